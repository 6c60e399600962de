#include "loader/cuda/host_cache.h"

#include "base/error.h"

#include <algorithm>

namespace myxtts {

std::byte* HostCache::add(uint64_t bytes) {
  if (chunks_.empty() || used_of_last_ + bytes > chunks_.back().size_bytes()) {
    const uint64_t next = std::min(std::max(chunk_bytes, bytes), budget_bytes_ - taken_bytes_);
    if (next < bytes) return nullptr;
    try {
      chunks_.emplace_back(next, true);
    } catch (const Error&) {  // the system gives no more: what is kept stays, the rest is read
      budget_bytes_ = taken_bytes_;
      return nullptr;
    }
    taken_bytes_ += next, used_of_last_ = 0;
  }
  std::byte* const place = chunks_.back().data() + used_of_last_;
  used_of_last_ += bytes;
  return place;
}

}  // namespace myxtts
