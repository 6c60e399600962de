// A training run from its first step, or from where it stopped, to its end.
#pragma once

#include "corpus/corpus.h"
#include "loader/mode.h"
#include "settings/config.h"
#include "train/figures.h"

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>

namespace myxtts {

struct TrainInput {
  const Config& config;
  const Corpus& corpus;
  const Corpus* validation = nullptr;  // null: what the corpus holds out
  Mode mode;                           // where batches are made, and where the model is
  bool reset = false;                  // put an earlier run aside and begin anew
};

// What a run tells while it goes on; called from the thread that trains.
struct TrainListener {
  std::function<void(const std::string&)> say, warn;  // also from other threads
  std::function<void(int64_t step, int64_t total, const StepReport& last)> step;
  std::function<void(const StepReport&)> logged;
};

struct TrainSummary {
  int64_t steps = 0, total_steps = 0;
  int64_t session_steps = 0;  // of them, now
  double first_loss = 0, last_loss = 0, best_validation = 0;
  double seconds = 0;     // of this session
  double input_wait = 0;  // share of them
  int64_t captures = 0, retraces = 0, skipped = 0;
  bool interrupted = false, stopped_early = false;
  std::filesystem::path checkpoint, report;
};

// Returns after the last step, or once `stop` is set and the step in hand is done and saved.
TrainSummary train(const TrainInput& input, const TrainListener& listener, const std::atomic<bool>& stop);

}  // namespace myxtts
