#include "loader/depth_tuner.h"

#include <algorithm>

#include <fmt/format.h>

namespace myxtts {

DepthTuner::Change DepthTuner::update(const LoaderStats& stats, double held_up_s, size_t unused, double now_s) {
  fewest_unused_ = std::min(fewest_unused_, unused);
  const bool first = seen_at_s_ < 0;
  if (!first && stats.batches < seen_batches_ + batches_between) return {};
  const double wall_s = now_s - seen_at_s_;
  const double waiting = (stats.consumer_waits_s - seen_waits_s_) / wall_s;
  const double held_up = (held_up_s - seen_held_up_s_) / wall_s;
  const size_t never_used = fewest_unused_, was = depth_;
  seen_batches_ = stats.batches, seen_waits_s_ = stats.consumer_waits_s, seen_held_up_s_ = held_up_s;
  seen_at_s_ = now_s, fewest_unused_ = max_;
  if (first) return {};
  if (waiting > 0.01 && held_up > 0.1) depth_ = std::min(max_, was + std::max<size_t>(1, was / 2));
  if (waiting < 0.001 && never_used > was / 2) depth_ = std::max(min_, was - never_used / 2);
  if (depth_ == was) return {};
  std::string reason = fmt::format("{} {} instead of {}: ", depth_, what_, was);
  reason += depth_ > was ? fmt::format("loading was held up {:.0f} % of the time", 100 * held_up)
                         : fmt::format("{} were never in use", never_used);
  reason += fmt::format(", the consumer waited {:.1f} %", 100 * waiting);
  return {depth_, reason};
}

}  // namespace myxtts
