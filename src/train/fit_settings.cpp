#include "train/fit_settings.h"

#include "model/size.h"

#include <algorithm>
#include <cmath>

namespace myxtts {
namespace {

constexpr double little_speech_h = 0.5, much_speech_h = 10;

double dropout_for(double hours) { return hours < little_speech_h ? 0.2 : hours < much_speech_h ? 0.1 : 0.05; }

double learning_rate_for(double hours, const ModelSize& size, bool fine_tuned) {
  constexpr double measured_width = 384;  // of `small`, which these rates are measured with
  const double rate = fine_tuned ? 2e-4 : hours < little_speech_h ? 3e-4 : 5e-4;
  return rate * std::min(1.0, measured_width / static_cast<double>(size.decoder_width));
}

constexpr int64_t never = -1;  // of early_stopping

int64_t steps_for(double hours, bool fine_tuned) {
  const double of_an_hour = fine_tuned ? 8'000 : 20'000, fewest = fine_tuned ? 1'000 : 5'000;
  constexpr double most = 400'000, rounded_to = 100;
  const double steps = std::clamp(of_an_hour * std::sqrt(hours), fewest, most);
  return static_cast<int64_t>(std::round(steps / rounded_to) * rounded_to);
}

}  // namespace

Config fit_settings(Config config, double hours, bool fine_tuned) {
  TrainingConfig& training = config.training;
  if (training.target == "vocoder") {
    // A vocoder learns as long as it is trained, from any corpus; with a teacher it is only tuned.
    const bool tuned = !training.teacher.empty();
    if (training.learning_rate <= 0) training.learning_rate = tuned ? 1e-4 : 5e-4;
    if (training.epochs == 0 && training.max_steps == 0) training.max_steps = tuned ? 10'000 : 100'000;
    if (training.early_stopping == 0) training.early_stopping = never;
    return config;
  }
  if (training.dropout < 0) training.dropout = dropout_for(hours);
  if (training.condition_dropout < 0) training.condition_dropout = hours < much_speech_h ? 0.15 : 0.1;
  if (training.learning_rate <= 0)
    training.learning_rate = learning_rate_for(hours, model_size(config.model.size), fine_tuned);
  if (training.epochs == 0 && training.max_steps == 0) training.max_steps = steps_for(hours, fine_tuned);
  if (training.early_stopping == 0 && !fine_tuned) training.early_stopping = never;
  return config;
}

}  // namespace myxtts
