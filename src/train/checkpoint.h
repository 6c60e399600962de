// A checkpoint: one safetensors file with everything that an exact resume needs. Weights are `model.*`, their average
// `average.*`, the optimiser's memory `first_moment.*` and `second_moment.*`; the rest is in the metadata as text.
#pragma once

#include "model/parameters.h"
#include "synth/voice_description.h"
#include "train/optimizer.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace myxtts {

// How far a run has come. With the seed this is the whole random state: a step's noise and a batch's clips follow from
// numbers.
struct RunPosition {
  int64_t step = 0;               // updates done
  uint64_t epoch = 0, batch = 0;  // the next one
  uint64_t plan = 0;              // hash of what the batches follow from; another plan begins its epoch anew
  double best_validation = std::numeric_limits<double>::infinity();
  int64_t validations_without_progress = 0;
  double seconds = 0;  // of training, over all sessions
};

struct CheckpointHeader {
  VoiceDescription voice;
  RunPosition position;
};

// Throws Error, and leaves an old file of that name untouched.
void save_checkpoint(const std::filesystem::path& path, const CheckpointHeader& header, const ParameterLayout& layout,
                     const OptimizerState& state);

// Checked whole. `state` has its buffers already, on any device.
CheckpointHeader read_checkpoint_header(const std::filesystem::path& path);
void load_checkpoint(const std::filesystem::path& path, const ParameterLayout& layout, OptimizerState& state);

// The checkpoints of a run: `step-00001000.safetensors`, the newest few, and `best.safetensors`.
class CheckpointFolder {
 public:
  CheckpointFolder(std::filesystem::path folder, int64_t keep);
  ~CheckpointFolder();  // waits for what is being written
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  // Removes what a run that was killed had half written. For the one that trains: nobody else writes here.
  void remove_leftovers() const;

  // Copies the state and returns; a thread writes it. Throws nothing of that: see `take_error`.
  void save_in_background(const CheckpointHeader& header, const ParameterLayout& layout, const OptimizerState& state,
                          bool best);
  void wait();
  // What went wrong with the last write, once.
  std::optional<std::string> take_error();

  // Moves everything of an earlier run into a folder beside, and returns that; nothing is deleted.
  static std::optional<std::filesystem::path> set_aside(const std::filesystem::path& folder);

 private:
  void remove_old(const std::filesystem::path& written) const;

  std::filesystem::path folder_;
  int64_t keep_;
  std::thread writer_;
  std::optional<std::string> error_;
};

}  // namespace myxtts
