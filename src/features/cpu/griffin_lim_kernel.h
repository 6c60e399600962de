// Inner loops of Griffin-Lim: eight frames at a time, one per vector lane. Compiled for AVX2 and for any CPU with
// bit-identical results, like mel_kernel.h.
#pragma once

#include "features/cpu/lane_fft.h"
#include "features/filter_bank.h"

#include <vector>

namespace myxtts {

struct GriffinLimTables {
  explicit GriffinLimTables(const MelSpec& spec);

  MelSpec spec;
  std::vector<float> window;     // [n_fft], analysis window
  std::vector<float> synthesis;  // [n_fft], synthesis window including the scale of the inverse FFT
  std::vector<FftPass<float>> passes;
  std::vector<float> untangle;
  std::vector<MelFilter> filters;
  std::vector<float> weights;          // of all filters, concatenated
  std::vector<float> inverse_weights;  // per bin: 1 / sum of the filter weights; 0 for bins without a filter

  size_t strip_samples() const;   // samples covered by eight neighbouring frames
  size_t scratch_values() const;  // floats needed by either function below
};

struct GriffinLimKernel {
  // Nonnegative magnitudes (or powers) [bins] whose mel approximates `mel` [n_mels], smooth between filter centres.
  void (*magnitudes)(const GriffinLimTables& tables, const EightFloats* mel, EightFloats* magnitude,
                     EightFloats* scratch);

  // One iteration: imposes the target magnitudes [bins] on eight frames of `signal` (frame i at i * hop_length),
  // keeping their phase with momentum `momentum_share`, and overlap-adds them into `strip`. `previous` [bins][re, im]
  // holds the last estimate, zeros at first.
  void (*step)(const GriffinLimTables& tables, const float* signal, const EightFloats* magnitude, float momentum_share,
               EightFloats* previous, float* strip, EightFloats* scratch);
};

namespace any_cpu {
extern const GriffinLimKernel griffin_lim_kernel;
}
namespace avx2 {
extern const GriffinLimKernel griffin_lim_kernel;
}

}  // namespace myxtts
