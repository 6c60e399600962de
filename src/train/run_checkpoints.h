// When a run's checkpoints are written, and what happens if one cannot be: the one before it stays and the run
// continues. The thread that trains.
#pragma once

#include "base/clock.h"
#include "train/checkpoint.h"
#include "train/step.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace myxtts {

class RunCheckpoints {
 public:
  // `saved_step`: of the checkpoint that the run was resumed from, or -1. Keeps the references.
  RunCheckpoints(CheckpointFolder& folder, const TrainingStep& step, std::map<std::string, std::string> metadata,
                 int64_t saved_step)
      : folder_(folder), step_(step), metadata_(std::move(metadata)), saved_step_(saved_step) {}
  ~RunCheckpoints() { folder_.wait(); }  // the writer refers to the step
  RunCheckpoints(const RunCheckpoints&) = delete;
  RunCheckpoints& operator=(const RunCheckpoints&) = delete;

  // Copies the state and returns; `best` makes it the best one too. `warn` is called if the one before could not be
  // written; if that was the best so far, the position's best validation is forgotten.
  void save(RunPosition& position, bool best, const std::function<void(const std::string&)>& warn);

  // By rank 0, at this position.
  void written_elsewhere(const RunPosition& position) { saved_step_ = position.step; }

  // Waits for the last one; why it could not be written, if so.
  std::optional<std::string> finish();

  int64_t saved_step() const { return saved_step_; }
  std::filesystem::path newest() const;

 private:
  CheckpointFolder& folder_;
  const TrainingStep& step_;
  const std::map<std::string, std::string> metadata_;
  int64_t saved_step_;
  bool best_in_hand_ = false;  // what is being written is the best so far
  Stopwatch since_save_;
};

}  // namespace myxtts
