#include "train/run_checkpoints.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

namespace myxtts {

void RunCheckpoints::save(RunPosition& position, bool best, const std::function<void(const std::string&)>& warn) {
  position.seconds += since_save_.seconds();
  since_save_.restart();
  folder_.wait();
  if (const auto error = folder_.take_error()) {
    warn(fmt::format("{}; the one before it stays, and the run continues", *error));
    if (best_in_hand_ && !best) position.best_validation = std::numeric_limits<double>::infinity();
  }
  folder_.save_in_background({metadata_, position}, step_.groups(), step_.states(), best);
  best_in_hand_ = best;
  saved_step_ = position.step;
}

std::optional<std::string> RunCheckpoints::finish() {
  folder_.wait();
  return folder_.take_error();
}

std::filesystem::path RunCheckpoints::newest() const {
  return folder_.path() / fmt::format("step-{:08}.safetensors", saved_step_);
}

}  // namespace myxtts
