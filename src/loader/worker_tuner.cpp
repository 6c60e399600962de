#include "loader/worker_tuner.h"

#include "base/counted.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace myxtts {

WorkerTuner::Change WorkerTuner::update(const LoaderStats& stats, double now_s) {
  if (seen_at_s_ >= 0 && stats.batches < seen_.batches + batches_between) return {};
  const double wall_s = now_s - seen_at_s_;
  const double waiting = (stats.consumer_waits_s - seen_.consumer_waits_s) / wall_s;
  const double busy = (stats.rows_busy_s - seen_.rows_busy_s) / (wall_s * static_cast<double>(active_));
  const bool first = seen_at_s_ < 0;
  seen_ = stats, seen_at_s_ = now_s;
  if (first) return {};
  size_t wanted = active_;
  if (waiting > 0.01 && busy > 0.85) wanted = std::min(max_, active_ + std::max<size_t>(1, active_ / 2));
  if (waiting < 0.001 && busy < 0.4) {
    wanted = std::max(min_, static_cast<size_t>(std::ceil(static_cast<double>(active_) * busy / 0.6)));
  }
  if (wanted == active_) return {};
  Change change{wanted,
                fmt::format("{} instead of {}: they were busy {:.0f} % of the time, the consumer waited {:.1f} %",
                            counted(wanted, "worker"), active_, 100 * busy, 100 * waiting)};
  active_ = wanted;
  return change;
}

}  // namespace myxtts
