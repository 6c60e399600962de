// Tunes how many of the loader's workers are active. Updated at every batch, decides every 64. One thread.
#pragma once

#include "loader/loader.h"

#include <cstdint>
#include <string>

namespace myxtts {

class WorkerTuner {
 public:
  static constexpr uint64_t batches_between = 64;

  WorkerTuner(size_t min, size_t max) : min_(min), max_(max), active_(max) {}

  struct Change {
    size_t workers = 0;  // 0: none
    std::string reason;
  };

  // `now_s` has any origin. Too many workers are mostly idle while the consumer never waits; too few are always busy
  // while it does.
  Change update(const LoaderStats& stats, double now_s);

 private:
  const size_t min_, max_;
  size_t active_;
  LoaderStats seen_;
  double seen_at_s_ = -1;
};

}  // namespace myxtts
