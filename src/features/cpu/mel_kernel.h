// Inner loops of the fast CPU mel: eight frames at a time, one per vector lane. The same source is compiled for AVX2
// and for any CPU; without FMA contraction results are bit-identical.
//
// Frames are transformed in float. If rounding may exceed the tolerance (see rounding.h), all eight are recomputed in
// double.
#pragma once

#include "features/cpu/lane_fft.h"
#include "features/mel_spec.h"

#include <vector>

namespace myxtts {

template <typename Scalar>
struct MelCoefficients {
  std::vector<Scalar> window;           // [n_fft]
  std::vector<FftPass<Scalar>> passes;  // of the complex FFT of n_fft / 2 points
  std::vector<Scalar> untangle;         // (cos, sin) of bins 0 .. n_fft / 4: real FFT from the complex one
  std::vector<Scalar> weights;          // of all filters, concatenated
};

struct MelTables {
  explicit MelTables(const MelSpec& spec);

  MelSpec spec;
  int bins = 0;  // used by the filters
  std::vector<int> first_bin, taps;
  std::vector<float> rounding_thresholds;  // per filter, or empty; see rounding.h
  MelCoefficients<float> in_float;
  MelCoefficients<double> in_double;

  // Scratch bytes per call, aligned to `scratch_alignment`.
  size_t scratch_bytes() const;
};

// `frames[lane]` points to n_fft samples; `rows[lane]` receives n_mels values, or is null for an unused lane.
using EightFrames = void (*)(const MelTables& tables, const float* const frames[mel_lanes],
                             float* const rows[mel_lanes], void* scratch);

namespace any_cpu {
double peak_flops_per_s();
void mel_eight_frames(const MelTables&, const float* const frames[mel_lanes], float* const rows[mel_lanes], void*);
}  // namespace any_cpu
namespace avx2 {
double peak_flops_per_s();
void mel_eight_frames(const MelTables&, const float* const frames[mel_lanes], float* const rows[mel_lanes], void*);
}  // namespace avx2

}  // namespace myxtts
