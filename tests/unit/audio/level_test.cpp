#include "audio/level.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

TEST(Level, brings_a_clip_to_its_target_and_guards_the_peak) {
  std::vector<float> quiet(1000, 0.01F);
  normalise_rms(quiet, 0.1);
  EXPECT_NEAR(quiet[0], 0.1F, 1e-6);
  std::vector<float> spiky(1000, 0.0F);
  spiky[5] = 0.5F;
  normalise_rms(spiky, 0.5);
  EXPECT_EQ(spiky[5], 1.0F);
}

TEST(Level, silence_stays_silence) {
  std::vector<float> silence(100, 0.0F);
  normalise_rms(silence, 0.1);
  EXPECT_EQ(silence[50], 0.0F);
  EXPECT_EQ(gain_to_rms({}, 0.1), 1.0F);
}

TEST(Level, the_sounding_part_is_found_within_a_frame) {
  std::vector<float> clip(22050, 0.0F);
  for (size_t i = 8000; i < 14000; ++i) clip[i] = 0.3F * std::sin(0.1F * static_cast<float>(i));
  const SampleRange part = sounding_part(clip, {});
  EXPECT_NEAR(static_cast<double>(part.first), 8000, 2000);
  EXPECT_LE(part.first, 8000U);
  EXPECT_GE(part.end, 14000U);
  EXPECT_NEAR(static_cast<double>(part.end), 14000, 2000);
}

TEST(Level, a_silent_clip_has_no_sounding_part) {
  EXPECT_EQ(sounding_part(std::vector<float>(5000, 0.0F), {}).end, 0U);
  EXPECT_EQ(sounding_part({}, {}).end, 0U);
}

}  // namespace
}  // namespace myxtts
