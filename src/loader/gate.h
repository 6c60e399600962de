// Lets a limited number in at a time; the limit may change. Any thread.
#pragma once

#include "base/clock.h"

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace myxtts {

class Gate {
 public:
  explicit Gate(size_t limit) : limit_(limit) {}

  // Waits for room. False when it was stopped.
  bool enter() {
    std::unique_lock lock(mutex_);
    const int64_t start_ns = now_ns();
    changed_.wait(lock, [&] { return stopped_ || inside_ < limit_; });
    waited_ns_ += now_ns() - start_ns;
    ++inside_;
    return !stopped_;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    --inside_;
    changed_.notify_all();
  }
  void set_limit(size_t limit) {
    const std::lock_guard lock(mutex_);
    limit_ = limit;
    changed_.notify_all();
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

  size_t room() const {
    const std::lock_guard lock(mutex_);
    return limit_ > inside_ ? limit_ - inside_ : 0;
  }
  double waited_s() const {
    const std::lock_guard lock(mutex_);
    return static_cast<double>(waited_ns_) * 1e-9;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  size_t limit_, inside_ = 0;
  int64_t waited_ns_ = 0;
  bool stopped_ = false;
};

}  // namespace myxtts
