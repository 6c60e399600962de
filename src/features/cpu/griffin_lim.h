// Waveform from a mel without a neural vocoder, by the fast Griffin-Lim algorithm (Perraudin, Balazs and Søndergaard,
// 2013). Phase and detail between the filters are estimated, so it sounds metallic, but it needs no training. Any
// thread.
#pragma once

#include "features/mel_spec.h"

#include <cstdint>
#include <span>
#include <vector>

namespace myxtts {

struct GriffinLimOptions {
  int iterations = 60;
  double momentum = 0.99;  // 0: plain Griffin-Lim; 1 or more may diverge
  uint64_t seed = 1;       // of the initial phases
  size_t threads = 1;      // results are bit-identical for any number
};

// Length in samples of the waveform of `frames` frames: a multiple of the hop for which spec.frames() gives `frames`.
int64_t griffin_lim_samples(const MelSpec& spec, int64_t frames);

// `mel` is [frames, n_mels] as computed by MelCpu, with the logarithm, mean and std of the convention. NaN counts as
// silence. Samples may exceed [-1, 1] if the mel is too loud. Throws Error for a convention that normalises each clip
// to a fixed range (tf_signal), because the level is not in the mel.
std::vector<float> griffin_lim(const MelSpec& spec, std::span<const float> mel, int64_t frames,
                               const GriffinLimOptions& options = {});

}  // namespace myxtts
