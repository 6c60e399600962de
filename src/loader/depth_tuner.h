// Tunes how many batches the loader holds at one place: in the ring, or being read. Updated at every batch, decides
// every 64. One thread.
#pragma once

#include "loader/loader.h"

#include <cstdint>
#include <string>

namespace myxtts {

class DepthTuner {
 public:
  static constexpr uint64_t batches_between = 64;

  // `what` names them in the reason: "batches in the ring".
  DepthTuner(std::string what, size_t min, size_t max, size_t start)
      : what_(std::move(what)), min_(min), max_(max), depth_(start), fewest_unused_(start) {}

  struct Change {
    size_t batches = 0;  // 0: none
    std::string reason;
  };

  // `held_up_s`: total time that loading was blocked because there were no more. `unused`: how many of them are idle
  // now. `now_s` has any origin. Too few block loading while the consumer waits; too many are never in use.
  Change update(const LoaderStats& stats, double held_up_s, size_t unused, double now_s);

 private:
  const std::string what_;
  const size_t min_, max_;
  size_t depth_, fewest_unused_;
  uint64_t seen_batches_ = 0;
  double seen_waits_s_ = 0, seen_held_up_s_ = 0, seen_at_s_ = -1;
};

}  // namespace myxtts
