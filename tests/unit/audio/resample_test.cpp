#include "audio/resample.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

std::vector<float> tone(double hz, int rate, size_t samples) {
  std::vector<float> wave(samples);
  for (size_t i = 0; i < samples; ++i)
    wave[i] = static_cast<float>(std::sin(2 * std::numbers::pi * hz * static_cast<double>(i) / rate));
  return wave;
}

TEST(Resample, a_tone_stays_that_tone) {
  for (const auto& [from, to] :
       {std::pair{48000, 22050}, {44100, 22050}, {16000, 24000}, {8000, 22050}, {44101, 16000}}) {
    const std::vector<float> out = resample(tone(440, from, static_cast<size_t>(from)), from, to);
    const std::vector<float> expected = tone(440, to, out.size());
    for (size_t i = out.size() / 4; i < out.size() * 3 / 4; ++i)
      ASSERT_NEAR(out[i], expected[i], 5e-3) << from << " " << to;
  }
}

TEST(Resample, length_is_the_ratio_rounded_up) {
  EXPECT_EQ(resample(std::vector<float>(1000), 48000, 22050).size(), 460U);
  EXPECT_EQ(resample(std::vector<float>(1), 8000, 22050).size(), 3U);
  EXPECT_TRUE(resample(std::vector<float>(), 8000, 22050).empty());
}

TEST(Resample, equal_rates_change_nothing) {
  const std::vector<float> wave = tone(100, 8000, 64);
  EXPECT_EQ(resample(wave, 8000, 8000), wave);
}

TEST(Resample, with_and_without_the_table_is_the_same) {
  const std::vector<float> wave = tone(300, 11025, 30000);
  const ResampleFilter filter(11025, 16000);
  const std::vector<float> whole = resample(wave, filter, filter.table());
  const std::vector<float> part = resample(std::span(wave).first(200), 11025, 16000);  // too short to pay for a table
  ASSERT_LT(part.size(), static_cast<size_t>(filter.phases()));
  for (size_t i = 0; i < 250; ++i) EXPECT_EQ(part[i], whole[i]);
}

}  // namespace
}  // namespace myxtts
