// Triangular mel filter bank and analysis window, computed in double. Pure functions; any thread.
#pragma once

#include "features/mel_spec.h"

#include <vector>

namespace myxtts {

struct MelFilter {
  int first_bin = 0;
  std::vector<double> weights;  // of consecutive bins; the first and the last are nonzero
};

std::vector<MelFilter> mel_filters(const MelSpec& spec);

// One past the last bin of any filter.
int used_bins(const std::vector<MelFilter>& filters);

// Periodic Hann window of win_length, centred in n_fft.
std::vector<double> mel_window(const MelSpec& spec);

}  // namespace myxtts
