// Decides which mel values need double precision, for both backends. A float FFT leaves an error in every bin that is
// relative to the energy of the whole frame, so a quiet band beside a loud one may lose its precision.
#pragma once

#include "base/host_device.h"
#include "features/filter_bank.h"

#include <cmath>
#include <vector>

namespace myxtts {

// Half of the guaranteed 1e-3, in log units. Values with a larger error bound are recomputed in double.
constexpr double mel_tolerance = 5e-4;

// Error of a filter output, relative to the spectrum RMS and the L2 norm of its weights. Measured on 46,000 values of
// speech-like clips and chirps: median 4e-8, 99th percentile 2.6e-7, max 7.3e-7. This value keeps the max within 1e-3.
constexpr double rounding_per_rms = 3.7e-7;

// Per filter: threshold of its output, relative to the spectrum RMS, below which the value needs double. Errors of bins
// are independent, so they add in quadrature. Empty without a logarithm, because errors then stay small.
inline std::vector<float> rounding_thresholds(const MelSpec& spec, const std::vector<MelFilter>& filters) {
  std::vector<float> thresholds;
  for (const MelFilter& filter : filters) {
    double sum = 0, squares = 0;
    for (const double w : filter.weights) sum += w, squares += w * w;
    const double threshold = rounding_per_rms / mel_tolerance * std::sqrt(squares);
    thresholds.push_back(
        static_cast<float>(spec.mel_power == 2 ? 2.0 * threshold / std::sqrt(sum + 1e-30) : threshold));
  }
  return spec.log == MelLog::none ? std::vector<float>() : thresholds;
}

// Whether the error of a filter output may exceed the tolerance. `floor` is that of the logarithm; `spectrum_rms` is
// the RMS of |X| over all bins.
MYXTTS_HOST_DEVICE inline bool needs_double(float value, float floor, float spectrum_rms, float rounding_threshold,
                                            bool power) {
  const float limit = spectrum_rms * rounding_threshold;
  return (value > floor ? value : floor) < (power ? limit * limit : limit);
}

}  // namespace myxtts
