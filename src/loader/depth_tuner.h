// How many batches are enough at a place where the loader holds some: in the ring, or being read. Looked at anew every
// so many batches. One thread.
#pragma once

#include "loader/loader.h"

#include <cstdint>
#include <string>

namespace myxtts {

class DepthTuner {
 public:
  static constexpr uint64_t batches_between = 64;

  // `what` they are, for the reason: "batches in the ring". Never fewer than `least`, never more than `most`.
  DepthTuner(std::string what, size_t least, size_t most, size_t start)
      : what_(std::move(what)), least_(least), most_(most), depth_(start), fewest_unused_(start) {}

  struct Change {
    size_t batches = 0;  // 0: none
    std::string reason;
  };

  // Asked at every batch. `held_up_s`: how long loading has stood still because there were no more. `unused`: how many
  // of them nobody needs at this moment. `now_s` counts from anywhere. Too few hold loading up although the consumer
  // waits; too many are never in use although it does not.
  Change look(const LoaderStats& stats, double held_up_s, size_t unused, double now_s);

 private:
  const std::string what_;
  const size_t least_, most_;
  size_t depth_, fewest_unused_;
  uint64_t seen_batches_ = 0;
  double seen_waits_s_ = 0, seen_held_up_s_ = 0, seen_at_s_ = -1;
};

}  // namespace myxtts
