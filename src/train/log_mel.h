// Log-mel as a differentiable function of samples, in any convention that does not normalise whole clips. Any thread.
#pragma once

#include "features/mel_spec.h"
#include "model/spectrum.h"

namespace myxtts {

struct MelTables {
  MelSpec spec;
  SpectrumTables spectrum;
  at::Tensor filters;  // [bins, n_mels]
};
// Throws Error for a convention that normalises whole clips.
MelTables make_mel_tables(const MelSpec& spec, at::Device device);

// [rows, samples] to [rows, frames, n_mels].
at::Tensor log_mel(const MelTables& tables, const at::Tensor& samples);
// The same of their magnitudes [rows, frames, bins].
at::Tensor log_mel_of_magnitudes(const MelTables& tables, const at::Tensor& magnitude);

}  // namespace myxtts
