// How many of the loader's workers are enough, looked at anew every so many batches. One thread.
#pragma once

#include "loader/loader.h"

#include <cstdint>
#include <string>

namespace myxtts {

class WorkerTuner {
 public:
  static constexpr uint64_t batches_between = 64;

  WorkerTuner(size_t least, size_t most) : least_(least), most_(most), active_(most) {}

  struct Change {
    size_t workers = 0;  // 0: none
    std::string reason;
  };

  // `now_s` counts from anywhere. Too many workers are mostly idle while the consumer never waits; too few are always
  // busy while it does.
  Change look(const LoaderStats& stats, double now_s);

 private:
  const size_t least_, most_;
  size_t active_;
  LoaderStats seen_;
  double seen_at_s_ = -1;
};

}  // namespace myxtts
