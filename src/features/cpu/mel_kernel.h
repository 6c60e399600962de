// The inner part of the fast CPU mel: eight frames at a time, one in each lane of a vector, so that every step of the
// transform is a plain vector operation. The same source is compiled for AVX2 and for any CPU; without contraction
// both round alike, so the results are equal to the last bit.
//
// Frames are transformed in float; where rounding may have done too much to one (a near-silent band beside a loud one,
// see rounding.h), the eight are done again in double.
#pragma once

#include "features/cpu/lane_fft.h"
#include "features/mel_spec.h"

#include <vector>

namespace myxtts {

template <typename Scalar>
struct MelNumbers {
  std::vector<Scalar> window;           // [n_fft]
  std::vector<FftPass<Scalar>> passes;  // of the complex transform of n_fft / 2 points
  std::vector<Scalar> untangle;         // (cos, sin) of bins 0 .. n_fft / 4: the real transform from the complex one
  std::vector<Scalar> weights;          // of all filters, one after another
};

struct MelTables {
  explicit MelTables(const MelSpec& spec);

  MelSpec spec;
  int bins = 0;  // those that a filter uses
  std::vector<int> first_bin, taps;
  std::vector<float> doubt_shares;  // per filter, or empty; see rounding.h
  MelNumbers<float> in_float;
  MelNumbers<double> in_double;

  // Bytes of scratch memory that a call needs, aligned to `scratch_alignment`.
  size_t scratch_bytes() const;
};

// `frames[lane]` points at n_fft samples; `rows[lane]` receives n_mels values, or is null for a lane that is not
// needed.
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
