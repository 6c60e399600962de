#include "train/fit_settings.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {

TrainingConfig fitted(double hours, const std::string& size = "small", TrainingConfig training = {}) {
  Config config;
  config.model.size = size;
  config.training = training;
  return fit_settings(config, hours).training;
}

TEST(FitSettings, follow_from_the_hours_of_speech_and_the_size) {
  EXPECT_EQ(fitted(0.3).dropout, 0.2);
  EXPECT_EQ(fitted(1).dropout, 0.1);
  EXPECT_EQ(fitted(24).dropout, 0.05);
  EXPECT_EQ(fitted(0.3).learning_rate, 3e-4);
  EXPECT_EQ(fitted(1).learning_rate, 5e-4);
  EXPECT_EQ(fitted(1, "tiny").learning_rate, 5e-4);
  EXPECT_DOUBLE_EQ(fitted(1, "big").learning_rate, 2.5e-4);
  EXPECT_EQ(fitted(0.001).max_steps, 5000);
  EXPECT_EQ(fitted(1).max_steps, 20000);
  EXPECT_EQ(fitted(4).max_steps, 40000);
  EXPECT_EQ(fitted(1e6).max_steps, 400000);
}

TEST(FitSettings, ask_for_less_of_a_voice_that_begins_with_another) {
  const TrainingConfig tuned = fit_settings(Config(), 0.25, true).training;
  EXPECT_EQ(tuned.learning_rate, 2e-4);
  EXPECT_EQ(tuned.max_steps, 4000);
  EXPECT_EQ(tuned.dropout, 0.2);
  EXPECT_EQ(fit_settings(Config(), 1e-4, true).training.max_steps, 1000);
}

TEST(FitSettings, stop_early_by_themselves_only_what_begins_with_another) {
  constexpr int64_t automatic = 0, never = -1;
  EXPECT_EQ(fitted(1).early_stopping, never);
  EXPECT_EQ(fit_settings(Config(), 1, true).training.early_stopping, automatic);
  Config vocoder;
  vocoder.training.target = "vocoder";
  EXPECT_EQ(fit_settings(vocoder, 1, true).training.early_stopping, never);
  TrainingConfig training;
  training.early_stopping = 7;
  EXPECT_EQ(fitted(1, "small", training).early_stopping, 7);
}

TEST(FitSettings, leave_what_is_set) {
  TrainingConfig training;
  training.dropout = 0, training.learning_rate = 1e-4, training.epochs = 7;
  const TrainingConfig same = fitted(1, "small", training);
  EXPECT_EQ(same.dropout, 0);
  EXPECT_EQ(same.learning_rate, 1e-4);
  EXPECT_EQ(same.epochs, 7);
  EXPECT_EQ(same.max_steps, 0);
  training.epochs = 0, training.max_steps = 12;
  EXPECT_EQ(fitted(1, "small", training).max_steps, 12);
}

}  // namespace
}  // namespace myxtts
