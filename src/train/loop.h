// The training loop: schedule, accumulation, validation, early stopping, stop. It knows a trainable, not what it is.
// The thread that trains.
#pragma once

#include "base/clock.h"
#include "loader/feed.h"
#include "train/ranks.h"
#include "train/run_checkpoints.h"
#include "train/run_log.h"
#include "train/run_plan.h"
#include "train/step.h"
#include "train/step_meter.h"

#include <atomic>
#include <limits>
#include <optional>
#include <vector>

namespace myxtts {

// What a loop works with; all of it outlives the loop.
struct LoopParts {
  const TrainInput& input;
  const RunPlan& plan;
  const Trainable& trainable;
  TrainingStep& step;
  RunLog& log;
  RunCheckpoints& checkpoints;
};

class Loop {
 public:
  Loop(const LoopParts& parts, const RunPosition& position, const std::atomic<bool>& stop);

  TrainSummary run();

 private:
  const TrainingConfig& config() const { return parts_.input.config.training; }
  const Corpus& validation_corpus() const;
  at::Device device() const;
  bool due(int64_t every) const { return every > 0 && position_.step % every == 0; }
  bool validation_due(bool epoch_ended) const;
  bool stops_early() const;
  Ranks* ranks() const { return parts_.input.ranks; }
  bool writes() const { return ranks() == nullptr || ranks()->writes(); }
  bool stopping() const { return ranks() == nullptr ? stop_.load() : all_stop_; }
  int64_t captures() const;

  std::unique_ptr<BatchSource> open_training_feed();
  Feed validation_feed() const;
  void train_on(BatchSource& source);
  void keep_begun_log();
  bool one_step(BatchSource& source);  // whether an epoch ended
  void report_first_step();
  void share_feed(Feed& feed) const;
  void note_replaced(const Batch& batch);
  void log_replaced();
  TensorMap cut_tensors(const Batch& batch) const;
  void check_signature(const TensorMap& batch, bool validation);
  void begin_log(const LoaderStats& loader);
  bool log_is_due() const;
  void finish_log();
  TrainProgress progress() const;
  void drain();
  std::vector<double> evaluate();
  bool validate();  // whether it is the best so far
  void sample();
  void save(bool best);
  void end();

  const LoopParts parts_;
  const std::atomic<bool>& stop_;
  bool all_stop_ = false;          // a rank was asked to stop: all of them heard it with the same batch
  std::vector<BadClip> replaced_;  // for rank 0 to write down
  RunPosition position_;
  StepMeter meter_;
  RetraceMonitor monitor_;
  double learning_rate_ = 0;
  int64_t sampled_step_ = -1;
  Stopwatch session_;
  double distortion_ = std::numeric_limits<double>::quiet_NaN();  // of the newest validation
  StepMetrics last_;                                              // logged
  std::optional<StepMetrics> pending_;                            // waits for its losses
  TrainSummary summary_;
};

}  // namespace myxtts
