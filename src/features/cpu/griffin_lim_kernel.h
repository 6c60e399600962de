// The inner part of Griffin-Lim: eight frames at a time, one in each lane of a vector. Compiled for AVX2 and for any
// CPU with results that are equal to the last bit, like mel_kernel.h.
#pragma once

#include "features/cpu/lane_fft.h"
#include "features/filter_bank.h"

#include <vector>

namespace myxtts {

struct GriffinLimTables {
  explicit GriffinLimTables(const MelSpec& spec);

  MelSpec spec;
  std::vector<float> window;     // [n_fft], for taking a frame apart
  std::vector<float> synthesis;  // [n_fft], the window with every constant factor of the way back
  std::vector<FftPass<float>> passes;
  std::vector<float> untangle;
  std::vector<MelFilter> filters;
  std::vector<float> weights;          // of all filters, one after another
  std::vector<float> inverse_weights;  // per bin, of the sum of the filters' weights; 0 where no filter reaches

  size_t strip_samples() const;   // what eight neighbouring frames cover
  size_t scratch_values() const;  // that either function below needs
};

struct GriffinLimKernel {
  // The magnitudes [bins], or powers, whose mel is `mel` [n_mels], as near as positive numbers come to it. Smooth
  // between the filters' centres, since nothing in a mel says otherwise.
  void (*magnitudes)(const GriffinLimTables& tables, const EightFloats* mel, EightFloats* magnitude,
                     EightFloats* scratch);

  // One step: eight frames of `signal` (frame i at i * hop_length) get the magnitudes [bins] that they should have and
  // keep their phase, pushed on by `momentum_share` of what the last step found; their windowed sum goes to `strip`.
  // `previous` [bins][re, im] is the memory of that step, zeros at first.
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
