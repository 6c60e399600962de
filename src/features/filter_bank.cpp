#include "features/filter_bank.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace myxtts {
namespace {

// Slaney scale: linear up to 1 kHz, logarithmic above.
constexpr double slaney_hz_per_mel = 200.0 / 3.0;
constexpr double slaney_knee_hz = 1000.0;
constexpr double slaney_knee_mel = slaney_knee_hz / slaney_hz_per_mel;
const double slaney_log_step = std::log(6.4) / 27.0;

double hz_to_mel(MelScale scale, double hz) {
  if (scale != MelScale::slaney) return 2595.0 * std::log10(1.0 + hz / 700.0);
  return hz < slaney_knee_hz ? hz / slaney_hz_per_mel
                             : slaney_knee_mel + std::log(hz / slaney_knee_hz) / slaney_log_step;
}

double mel_to_hz(MelScale scale, double mel) {
  if (scale != MelScale::slaney) return 700.0 * (std::pow(10.0, mel / 2595.0) - 1.0);
  return mel < slaney_knee_mel ? mel * slaney_hz_per_mel
                               : slaney_knee_hz * std::exp(slaney_log_step * (mel - slaney_knee_mel));
}

}  // namespace

std::vector<MelFilter> mel_filters(const MelSpec& spec) {
  const double low_mel = hz_to_mel(spec.mel_scale, spec.f_min);
  const double high_mel = hz_to_mel(spec.mel_scale, spec.effective_f_max());
  const bool in_mel = spec.mel_scale == MelScale::tensorflow;
  // Edges and bins on the axis (mel or Hz) on which the triangles are linear.
  std::vector<double> edges(static_cast<size_t>(spec.n_mels) + 2);
  for (size_t i = 0; i < edges.size(); ++i) {
    const double mel = low_mel + (high_mel - low_mel) * static_cast<double>(i) / (spec.n_mels + 1);
    edges[i] = in_mel ? mel : mel_to_hz(spec.mel_scale, mel);
  }
  std::vector<MelFilter> filters(static_cast<size_t>(spec.n_mels));
  for (size_t m = 0; m < filters.size(); ++m) {
    const double left = edges[m], centre = edges[m + 1], right = edges[m + 2];
    const double gain = spec.mel_norm == MelNorm::slaney ? 2.0 / (right - left) : 1.0;
    std::vector<double> weights(static_cast<size_t>(spec.bins()));
    for (int bin = 0; bin < spec.bins(); ++bin) {
      const double hz = static_cast<double>(bin) * spec.sample_rate / spec.n_fft;
      const double x = in_mel ? hz_to_mel(spec.mel_scale, hz) : hz;
      const double weight = std::min((x - left) / (centre - left), (right - x) / (right - centre));
      weights[static_cast<size_t>(bin)] = weight > 1e-10 ? gain * weight : 0.0;
    }
    const auto nonzero = [](double w) { return w != 0.0; };
    const auto first = std::find_if(weights.begin(), weights.end(), nonzero);
    const auto last = std::find_if(weights.rbegin(), weights.rend(), nonzero).base();
    if (first < last) filters[m] = {static_cast<int>(first - weights.begin()), std::vector<double>(first, last)};
  }
  return filters;
}

int used_bins(const std::vector<MelFilter>& filters) {
  int end = 0;
  for (const MelFilter& filter : filters)
    end = std::max(end, filter.first_bin + static_cast<int>(filter.weights.size()));
  return end;
}

std::vector<double> mel_window(const MelSpec& spec) {
  std::vector<double> window(static_cast<size_t>(spec.n_fft));
  const int left = (spec.n_fft - spec.win_length) / 2;
  for (int i = 0; i < spec.win_length; ++i) {
    window.at(left + i) = 0.5 - 0.5 * std::cos(2.0 * std::numbers::pi * i / spec.win_length);
  }
  return window;
}

}  // namespace myxtts
