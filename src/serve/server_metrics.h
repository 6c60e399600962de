// What a server did, as Prometheus reads it. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace myxtts {

// How many values were at most as large as each bound.
class Histogram {
 public:
  static constexpr std::array<double, 12> bounds = {0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60};

  void add(double value);
  std::string text(const std::string& name, const std::string& help) const;

 private:
  std::array<uint64_t, bounds.size()> counts_{};
  uint64_t count_ = 0;
  double sum_ = 0;
};

class ServerMetrics {
 public:
  void add_request(int status);
  void add_first_sample(double seconds_after_request);
  // Of speech that was sent to its end.
  void add_speech(double sound_s, double seconds_after_request);

  std::string text(size_t queue_length, uint64_t resident_bytes) const;

 private:
  mutable std::mutex mutex_;
  std::map<int, uint64_t> requests_;  // by status
  double sound_s_ = 0;
  Histogram first_sample_, whole_;
};

}  // namespace myxtts
