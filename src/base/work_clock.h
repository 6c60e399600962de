// Per-thread time spent on reading and features, which happen deep inside a row of the loader. The owner of the thread
// reads the counters before and after; they only increase and are not shared.
#pragma once

#include "base/clock.h"

namespace myxtts {

struct WorkClock {
  int64_t reading_ns = 0;   // in system calls: disk or page cache
  int64_t features_ns = 0;  // resampling and mel

  static WorkClock& of_this_thread() {
    thread_local WorkClock clock;
    return clock;
  }
};

// Adds its lifetime to one of the counters.
class WorkTimer {
 public:
  explicit WorkTimer(int64_t WorkClock::*part) : part_(part) {}
  ~WorkTimer() { WorkClock::of_this_thread().*part_ += now_ns() - start_ns_; }
  WorkTimer(const WorkTimer&) = delete;
  WorkTimer& operator=(const WorkTimer&) = delete;

 private:
  int64_t WorkClock::*part_;
  int64_t start_ns_ = now_ns();
};

}  // namespace myxtts
