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

// Sentences with every kind of edge, one of nothing but silence, and one that is shorter than a fade.
std::vector<std::vector<float>> sentences() {
  return {tone(0.3, 0.1, 0.4),  tone(0.2),       std::vector<float>(3000, 0.0F), tone(0.001),
          tone(0.3, 0.5, 0.01), tone(0.1, 0.002)};
}

std::vector<float> joined_whole() {
  std::vector<float> speech;
  for (const std::vector<float>& sentence : sentences()) append_speech(speech, sentence, 0.2, rate);
  return speech;
}

TEST(Joins, of_sentences_in_pieces_are_the_same_to_the_bit) {
  for (const size_t each : {1, 7, 100, 1000, 100000}) {
    SpeechJoiner joiner(rate);
    std::vector<float> speech;
    const auto take = [&](const std::vector<float>& settled) {
      speech.insert(speech.end(), settled.begin(), settled.end());
    };
    for (const std::vector<float>& sentence : sentences()) {
      for (size_t at = 0; at < sentence.size(); at += each) {
        joiner.add(std::span(sentence).subspan(at, std::min(each, sentence.size() - at)));
        take(joiner.take());
      }
      joiner.end_sentence(0.2);
    }
    take(joiner.take_rest());
    EXPECT_EQ(speech, joined_whole()) << each;
  }
}

TEST(Joins, hold_back_no_more_than_the_silence_at_the_end_and_a_fade) {
  SpeechJoiner joiner(rate);
  joiner.add(tone(0.3));
  const size_t settled = joiner.take().size();
  EXPECT_NEAR(static_cast<double>(settled) / rate, 0.3 - 0.005, 0.001);
}

TEST(Joins, sentences_pause_longer_than_clauses) {
  EXPECT_GT(pause_after('.'), pause_after(';'));
  EXPECT_GT(pause_after(';'), pause_after(','));
  EXPECT_GT(pause_after(','), pause_after(0));
}

}  // namespace
}  // namespace myxtts
