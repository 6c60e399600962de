#include "train/retrace_monitor.h"

#include <cstdlib>

#include <fmt/format.h>

namespace myxtts {

RetraceMonitor::RetraceMonitor(const std::vector<StepSignature>& declared)
    : declared_(declared.begin(), declared.end()) {}

std::optional<std::string> RetraceMonitor::see(const StepSignature& signature) {
  if (!seen_.insert(signature).second || declared_.contains(signature)) return std::nullopt;
  // The known shape that is nearest: what differs from it is what changed.
  const StepSignature* nearest = nullptr;
  int64_t least = 0;
  for (const std::set<StepSignature>* known : {&declared_, &seen_}) {
    for (const StepSignature& other : *known) {
      if (other.validation != signature.validation || other == signature) continue;
      const int64_t distance = std::abs(other.rows - signature.rows) +
                               std::abs(other.text_length - signature.text_length) +
                               std::abs(other.mel_frames - signature.mel_frames);
      if (nearest == nullptr || distance < least) nearest = &other, least = distance;
    }
  }
  if (nearest == nullptr) return std::nullopt;  // the first of its kind
  ++retraces_;
  std::string what;
  const auto compare = [&](const char* name, int64_t now, int64_t before) {
    if (now != before) what += fmt::format("{}{} {} instead of {}", what.empty() ? "" : ", ", name, now, before);
  };
  compare("rows", signature.rows, nearest->rows);
  compare("text", signature.text_length, nearest->text_length);
  compare("mel frames", signature.mel_frames, nearest->mel_frames);
  return what;
}

}  // namespace myxtts
