#include "train/log_mel.h"

#include "base/error.h"
#include "features/filter_bank.h"
#include "synth/vocoder_file.h"

#include <numbers>

#include <ATen/ATen.h>

namespace myxtts {

MelTables make_mel_tables(const MelSpec& spec, at::Device device) {
  if (spec.range != MelRange::none || spec.target_rms > 0) {
    fail("vocoder", "the log-mel {} normalises whole clips, which a vocoder cannot undo", spec.name,
         way_out("choose another mel_preset"));
  }
  MelTables tables{spec, make_spectrum_tables(frames_of(spec), device), {}};
  at::Tensor filters = at::zeros({spec.bins(), spec.n_mels});
  int64_t mel = 0;
  for (const MelFilter& filter : mel_filters(spec)) {
    for (size_t i = 0; i < filter.weights.size(); ++i) {
      filters[filter.first_bin + static_cast<int64_t>(i)][mel] = filter.weights[i];
    }
    ++mel;
  }
  tables.filters = filters.to(device);
  return tables;
}

at::Tensor log_mel(const MelTables& tables, const at::Tensor& samples) {
  return log_mel_of_magnitudes(tables,
                               magnitudes(spectrum(tables.spectrum, samples, tables.spec.frames(samples.size(1)))));
}

at::Tensor log_mel_of_magnitudes(const MelTables& tables, const at::Tensor& magnitude) {
  const MelSpec& spec = tables.spec;
  at::Tensor mel = at::matmul(spec.mel_power == 2 ? magnitude.square() : magnitude, tables.filters);
  if (spec.log == MelLog::none) return mel;
  const at::Tensor log = (mel.clamp_min(spec.log_floor) + spec.log_offset).log();
  return ((spec.log == MelLog::log10 ? log * std::numbers::log10e : log) - spec.mean) / spec.std;
}

}  // namespace myxtts
