// Statistics of a series of measurements: summary, period, and how well a GPU was used. Pure functions; any thread.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace myxtts {

struct SummaryStats {
  double mean = 0;
  double std = 0;                   // population standard deviation
  double cv = 0;                    // coefficient of variation, std / mean; 0 if the mean is 0
  double p5 = 0, p50 = 0, p95 = 0;  // percentiles, linearly interpolated
  double max = 0;
};
SummaryStats summarize(std::span<const double> values);  // all zero if `values` is empty

// Period in samples: the first clear peak of the autocorrelation after removing a linear trend. Uses the last 8192
// samples. Empty for a constant, for noise, or for less than two whole periods. Two similar spikes in a quiet series
// count as a period.
std::optional<double> period_of(std::span<const double> values);

// Classifies GPU utilisation, given in per cent.
enum class GpuUse {
  steady,
  under_used,   // 95th percentile below 70 %
  fluctuating,  // 95th percentile at least 70 % and 5th below 10 %: work arrives in bursts
};
GpuUse gpu_use_of(const SummaryStats& utilisation);
std::string_view name_of(GpuUse use);  // "steady", "under-used", "fluctuating"

}  // namespace myxtts
