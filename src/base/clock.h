// Monotonic time. Any thread.
#pragma once

#include <chrono>
#include <cstdint>

namespace myxtts {

inline int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class Stopwatch {
 public:
  double seconds() const { return static_cast<double>(now_ns() - start_ns_) * 1e-9; }
  double ms() const { return seconds() * 1e3; }
  void restart() { start_ns_ = now_ns(); }
  // Seconds since the start or the lap before.
  double lap() {
    const double passed = seconds();
    restart();
    return passed;
  }

 private:
  int64_t start_ns_ = now_ns();
};

}  // namespace myxtts
