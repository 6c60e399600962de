// The triangular mel filters, and the window. Computed in double; only the nonzero part of each filter is kept.
#pragma once

#include "features/mel_spec.h"

#include <vector>

namespace myxtts {

struct MelFilter {
  int first_bin = 0;
  std::vector<double> weights;  // of consecutive bins; never empty at both ends
};

std::vector<MelFilter> mel_filters(const MelSpec& spec);

// One past the last bin that any filter uses.
int used_bins(const std::vector<MelFilter>& filters);

// Periodic Hann of win_length, centred in n_fft.
std::vector<double> mel_window(const MelSpec& spec);

}  // namespace myxtts
