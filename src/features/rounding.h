// How far float's rounding may move a mel value, the same on both backends. A transform in float leaves an error in
// every bin that follows the whole frame's energy, so a band far below the loud ones may drown in it.
#pragma once

#include "base/host_device.h"
#include "features/filter_bank.h"

#include <cmath>
#include <vector>

namespace myxtts {

// Half of the promised 1e-3, in units of the logarithm. Where rounding may do more, double is used.
constexpr double mel_tolerance = 5e-4;

// A filter's error as a share of the spectrum's root mean square and of its root-sum-square weight, measured on speech-
// like clips and chirps: 4e-8 in the middle, 2.6e-7 at most for 99 of 100, 7.3e-7 the largest of 46,000. With this
// value the largest stays within the promised 1e-3.
constexpr double rounding_per_rms = 3.7e-7;

// Per filter, the share of the spectrum's root mean square below which a magnitude (or the root of a power) is in
// doubt. The errors of a filter's bins are independent: they add up as squares. Empty without a logarithm, where errors
// stay small beside the clip's loudest value.
inline std::vector<float> doubt_shares(const MelSpec& spec, const std::vector<MelFilter>& filters) {
  std::vector<float> shares;
  for (const MelFilter& filter : filters) {
    double sum = 0, squares = 0;
    for (const double w : filter.weights) sum += w, squares += w * w;
    const double share = rounding_per_rms / mel_tolerance * std::sqrt(squares);
    shares.push_back(static_cast<float>(spec.mel_power == 2 ? 2.0 * share / std::sqrt(sum + 1e-30) : share));
  }
  return spec.log == MelLog::none ? std::vector<float>() : shares;
}

// Whether rounding may have moved a filter's output `value` by more than the tolerance. `lowest` is what the logarithm
// raises it to; `spectrum_rms` is that of |X| over all bins.
MYXTTS_HOST_DEVICE inline bool in_doubt(float value, float lowest, float spectrum_rms, float doubt_share, bool power) {
  const float limit = spectrum_rms * doubt_share;
  return (value > lowest ? value : lowest) < (power ? limit * limit : limit);
}

}  // namespace myxtts
