#include "serve/server_metrics.h"

namespace myxtts {
namespace {

std::string heading(const std::string& name, const char* type, const std::string& help) {
  return fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

}  // namespace

void Histogram::add(double value) {
  for (size_t i = 0; i < bounds.size(); ++i) counts_[i] += value <= bounds[i] ? 1 : 0;
  ++count_;
  sum_ += value;
}

std::string Histogram::text(const std::string& name, const std::string& help) const {
  std::string out = heading(name, "histogram", help);
  for (size_t i = 0; i < bounds.size(); ++i) {
    out += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, bounds[i], counts_[i]);
  }
  return out + fmt::format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2:.6f}\n{0}_count {1}\n", name, count_, sum_);
}

void ServerMetrics::add_request(int status) {
  const std::lock_guard lock(mutex_);
  ++requests_[status];
}

void ServerMetrics::add_first_sample(double seconds_after_request) {
  const std::lock_guard lock(mutex_);
  first_sample_.add(seconds_after_request);
}

void ServerMetrics::add_speech(double sound_s, double seconds_after_request) {
  const std::lock_guard lock(mutex_);
  sound_s_ += sound_s;
  whole_.add(seconds_after_request);
}

std::string ServerMetrics::text(size_t queue_length, uint64_t resident_bytes) const {
  const std::lock_guard lock(mutex_);
  std::string out = heading("myxtts_requests_total", "counter", "Answered requests by status.");
  for (const auto& [status, count] : requests_) {
    out += fmt::format("myxtts_requests_total{{status=\"{}\"}} {}\n", status, count);
  }
  out += heading("myxtts_queue_length", "gauge", "Requests that are being spoken or wait for it.");
  out += fmt::format("myxtts_queue_length {}\n", queue_length);
  out += heading("myxtts_audio_seconds_total", "counter", "Seconds of sound that were sent.");
  out += fmt::format("myxtts_audio_seconds_total {:.3f}\n", sound_s_);
  out += first_sample_.text("myxtts_first_sample_seconds", "From a request to its first samples.");
  out += whole_.text("myxtts_speech_seconds", "From a request to the last byte of its speech.");
  out += heading("process_resident_memory_bytes", "gauge", "Resident memory of the server.");
  return out + fmt::format("process_resident_memory_bytes {}\n", resident_bytes);
}

}  // namespace myxtts
