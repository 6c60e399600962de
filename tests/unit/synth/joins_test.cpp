#include "synth/joins.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

constexpr int rate = 22050;

// A tone that is loud at both edges, with silence around it.
std::vector<float> tone(double seconds, double before_s = 0, double after_s = 0) {
  std::vector<float> sound(static_cast<size_t>((before_s + seconds + after_s) * rate), 0.0F);
  const auto first = static_cast<size_t>(before_s * rate), count = static_cast<size_t>(seconds * rate);
  for (size_t i = 0; i < count; ++i) sound[first + i] = 0.5F * std::cos(0.02F * static_cast<float>(i));
  return sound;
}

float largest_jump(const std::vector<float>& sound) {
  float largest = 0;
  for (size_t i = 1; i < sound.size(); ++i) largest = std::max(largest, std::abs(sound[i] - sound[i - 1]));
  return largest;
}

TEST(Joins, pauses_are_as_long_as_asked_for_whatever_silence_the_pieces_have) {
  constexpr double pause = 0.35;
  for (const double after : {0.0, 0.1, 0.9}) {
    for (const double before : {0.0, 0.1, 0.9}) {
      std::vector<float> speech = tone(0.3, 0, after);
      append_speech(speech, tone(0.3, before), pause, rate);
      EXPECT_NEAR(static_cast<double>(speech.size()) / rate, 0.3 + pause + 0.3, 0.002) << after << " " << before;
    }
  }
}

TEST(Joins, do_not_click) {
  std::vector<float> speech = tone(0.3);
  append_speech(speech, tone(0.3), 0.1, rate);
  EXPECT_LT(largest_jump(speech), 0.02F);
  EXPECT_FLOAT_EQ(speech.front(), 0.5F) << "only joins are faded";
}

TEST(Joins, of_nothing_and_of_silence_are_harmless) {
  std::vector<float> speech;
  append_speech(speech, {}, 0.3, rate);
  EXPECT_TRUE(speech.empty());
  append_speech(speech, std::vector<float>(100, 0.0F), 0.3, rate);
  append_speech(speech, tone(0.1), 0.05, rate);
  append_speech(speech, std::vector<float>(10, 0.0F), 0.05, rate);
  EXPECT_NEAR(static_cast<double>(speech.size()) / rate, 0.05 + 0.1 + 0.05, 0.01);
}

TEST(Joins, sentences_pause_longer_than_clauses) {
  EXPECT_GT(pause_after('.'), pause_after(';'));
  EXPECT_GT(pause_after(';'), pause_after(','));
  EXPECT_GT(pause_after(','), pause_after(0));
}

}  // namespace
}  // namespace myxtts
