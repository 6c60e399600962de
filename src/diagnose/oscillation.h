// What a series of measurements says about itself: how far it spreads, whether it comes back in a rhythm, and what that
// means for the GPU it was taken from. Pure functions; any thread.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace myxtts {

struct Spread {
  double mean = 0;
  double deviation = 0;             // standard deviation
  double variation = 0;             // deviation / mean; 0 where the mean is 0
  double p5 = 0, p50 = 0, p95 = 0;  // percentiles, interpolated between neighbours
  double most = 0;
};
Spread spread_of(std::span<const double> values);  // of none: zeros

// The distance, in samples, after which the series looks like itself again; nothing where it is constant, only noise,
// or shows less than two whole periods. The first clear peak of the autocorrelation, after a linear trend is taken out.
// Right for waves of any form and for rare spikes. Two like spikes in an otherwise quiet series count as a period,
// because short series have no more to show. Of more than 8192 samples the last ones are looked at.
std::optional<double> period_of(std::span<const double> values);

// How a GPU is used, from its utilisation in per cent over time.
enum class GpuUse {
  steady,
  under_used,   // even at its best (95th percentile) below 70 %
  fluctuating,  // above 70 % at its best and below 10 % at its worst (5th percentile): it is fed in bursts
};
GpuUse gpu_use_of(const Spread& utilisation);
std::string_view name_of(GpuUse use);  // "steady", "under-used", "fluctuating"

}  // namespace myxtts
