// A voice without a vocoder: sound whose mel is the given one, by the fast Griffin-Lim algorithm (Perraudin, Balazs and
// Søndergaard, 2013). What a mel has lost, the phases and the detail between its filters, is made up; it sounds a
// little like a tin can and needs no training. Any thread.
#pragma once

#include "features/mel_spec.h"

#include <cstdint>
#include <span>
#include <vector>

namespace myxtts {

struct GriffinLimOptions {
  int iterations = 60;
  double momentum = 0.99;  // 0: the algorithm of Griffin and Lim; 1 and more may not settle
  uint64_t seed = 1;       // of the first phases
  size_t threads = 1;      // the result is the same to the last bit for any number
};

// Samples of the sound that `frames` frames describe: what `spec.frames` counts as so many, and a whole number of hops.
int64_t griffin_lim_samples(const MelSpec& spec, int64_t frames);

// `mel` is [frames, n_mels] as MelCpu computes it, with the convention's own logarithm, mean and standard deviation.
// NaN counts as silence, and no value as louder than a float can hold. Samples may leave [-1, 1] where the mel does.
// Throws Error for a convention that spreads each clip over a fixed range (tf_signal): its level is not in the mel.
std::vector<float> griffin_lim(const MelSpec& spec, std::span<const float> mel, int64_t frames,
                               const GriffinLimOptions& options = {});

}  // namespace myxtts
