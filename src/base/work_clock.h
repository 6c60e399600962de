// How long a thread has been at reading and at features, the two parts of a loader's row that lie deep in other code.
// Whoever owns the thread looks before and after, and knows where the time went. One count a thread, which only grows:
// nothing is shared, and nobody has to hand a stopwatch down.
#pragma once

#include "base/clock.h"

namespace myxtts {

struct WorkClock {
  int64_t reading_ns = 0;   // in the system's calls: the disk, or the page cache
  int64_t features_ns = 0;  // resampling and mel

  static WorkClock& of_this_thread() {
    thread_local WorkClock clock;
    return clock;
  }
};

// Adds its own life to one of the two.
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
