// Which shapes the step has been given. A shape is captured once; one that comes after warm-up and is none of the
// declared ones is a retrace: the stall that static shapes are there to prevent.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace myxtts {

struct StepSignature {
  int64_t rows = 0, text_length = 0, mel_frames = 0;
  bool validation = false;

  auto operator<=>(const StepSignature&) const = default;  // NOLINT(modernize-use-nullptr): it means the 0 in there
};

class RetraceMonitor {
 public:
  // Without declared shapes the first that comes is the warm-up.
  explicit RetraceMonitor(const std::vector<StepSignature>& declared);

  // What changed, in words, where this is a retrace.
  std::optional<std::string> see(const StepSignature& signature);

  int64_t captures() const { return static_cast<int64_t>(seen_.size()); }
  int64_t retraces() const { return retraces_; }

 private:
  std::set<StepSignature> declared_, seen_;
  int64_t retraces_ = 0;
};

}  // namespace myxtts
