// A checkpoint: one safetensors file with everything that an exact resume needs. Weights are `model.*`, their EMA
// `average.*`, the optimiser's moments `first_moment.*` and `second_moment.*`; the rest is in the metadata as text.
#pragma once

#include "train/optimizer.h"
#include "train/trainable.h"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
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
  int64_t last_validation = 0;  // step
  double seconds = 0;           // of training, over all sessions
};

struct CheckpointHeader {
  std::map<std::string, std::string> metadata;  // of what was trained
  RunPosition position;
};

// Throws Error, and leaves an old file of that name untouched. Parameter names are unique over all groups.
void save_checkpoint(const std::filesystem::path& path, const CheckpointHeader& header,
                     const std::vector<ParameterGroup>& groups, const std::vector<OptimizerState>& states);

CheckpointHeader read_checkpoint_header(const std::filesystem::path& path);
// Of a file whose metadata were read. `path` is what an Error names.
CheckpointHeader checkpoint_header(const std::filesystem::path& path, std::map<std::string, std::string> metadata);

// Verified whole. The states have their buffers already, on any device.
void load_checkpoint(const std::filesystem::path& path, const std::vector<ParameterGroup>& groups,
                     std::vector<OptimizerState>& states);

// The checkpoints of a run: `step-00001000.safetensors`, the newest few, and `best.safetensors`.
class CheckpointFolder {
 public:
  // Creates the folder if there is none.
  CheckpointFolder(std::filesystem::path folder, int64_t keep);
  ~CheckpointFolder();  // waits for what is being written
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  const std::filesystem::path& path() const { return folder_; }

  // Copies the states and returns; a thread writes them. Throws nothing of that: see `take_error`. `groups` must stay
  // until it is done.
  void save_in_background(const CheckpointHeader& header, const std::vector<ParameterGroup>& groups,
                          const std::vector<OptimizerState>& states, bool best);
  void wait();
  // Why the last write failed, once.
  std::optional<std::string> take_error();

  // Moves everything of an earlier run into a folder beside, and returns that; nothing is deleted.
  static std::optional<std::filesystem::path> set_aside(const std::filesystem::path& folder);

 private:
  void make_best(const std::filesystem::path& written) const;
  void remove_old(const std::filesystem::path& written) const;

  std::filesystem::path folder_;
  int64_t keep_;
  std::thread writer_;
  std::optional<std::string> error_;
};

}  // namespace myxtts
