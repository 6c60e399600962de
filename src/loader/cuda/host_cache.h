// Clips that found no place on the GPU, in pinned host memory: as they are uploaded, so that from their second
// time on they need neither file nor CPU. The budget is fixed, the memory is taken as it is filled; the first clips
// that come are kept and none is thrown out. One thread adds, any reads.
#pragma once

#include "device/device.h"

#include <cstdint>
#include <vector>

namespace myxtts {

class HostCache {
 public:
  explicit HostCache(uint64_t budget_bytes) : budget_bytes_(budget_bytes) {}

  // Memory for `bytes` bytes, or null when the budget is used up.
  std::byte* add(uint64_t bytes);

 private:
  static constexpr uint64_t chunk_bytes = uint64_t{64} << 20;  // page-locking more at a time would be noticed

  uint64_t budget_bytes_;
  uint64_t taken_bytes_ = 0, used_of_last_ = 0;
  std::vector<HostBuffer> chunks_;
};

}  // namespace myxtts
