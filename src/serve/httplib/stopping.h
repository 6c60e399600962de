// Whether a server is stopping, and whether the time to finish what was begun is over. Any thread.
#pragma once

#include "base/clock.h"

#include <atomic>

namespace myxtts {

class Stopping {
 public:
  explicit Stopping(double grace_s) : grace_s_(grace_s) {}

  // False if it has begun before.
  bool begin() {
    int64_t never = 0;
    return since_ns_.compare_exchange_strong(never, now_ns());
  }
  bool begun() const { return since_ns_ != 0; }
  bool over() const {
    const int64_t since = since_ns_;
    return since != 0 && static_cast<double>(now_ns() - since) * 1e-9 > grace_s_;
  }

 private:
  const double grace_s_;
  std::atomic<int64_t> since_ns_ = 0;
};

}  // namespace myxtts
