// How far float's rounding may move a mel value, the same on both backends. A transform in float leaves an error in
// every bin that follows the whole frame's energy, so a band far below the loud ones may drown in it.
#pragma once

#include "base/host_device.h"
#include "features/filter_bank.h"

#include <cmath>
#include <vector>

namespace myxtts {

// The promise: no further than this from exact arithmetic, in units of the logarithm. Beyond it, double is used.
constexpr float mel_tolerance = 5e-4F;

// Four standard deviations of a bin's error, as a share of the spectrum's root mean square.
constexpr float rounding_per_rms = 6e-7F;

// Per filter: how its bins' errors add up (they are independent), and its sum of weights.
struct RoundingBound {
  std::vector<float> root_square_weights;
  std::vector<float> sum_weights;
  bool needed = false;  // without a logarithm errors stay small beside the clip's loudest value

  RoundingBound() = default;
  RoundingBound(const MelSpec& spec, const std::vector<MelFilter>& filters) : needed(spec.log != MelLog::none) {
    for (const MelFilter& filter : filters) {
      double sum = 0, squares = 0;
      for (const double w : filter.weights) sum += w, squares += w * w;
      sum_weights.push_back(static_cast<float>(sum));
      root_square_weights.push_back(static_cast<float>(std::sqrt(squares)));
    }
  }
};

// Whether rounding may have moved `value` (a filter's output before the logarithm, raised to the floor) by more than
// the tolerance. `spectrum_rms` is that of |X| over all bins.
MYXTTS_HOST_DEVICE inline bool rounding_too_large(float value, float floor, float spectrum_rms, bool power,
                                                  float root_square_weights, float sum_weights) {
  const float bin_error = rounding_per_rms * spectrum_rms;
  float error = bin_error * root_square_weights;
  if (power) error *= 2.0F * sqrtf(value / (sum_weights + 1e-30F)) + bin_error;
  const float kept = value > floor ? value : floor;
  return error > mel_tolerance * kept;
}

}  // namespace myxtts
