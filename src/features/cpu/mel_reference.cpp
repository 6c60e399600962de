#include "audio/level.h"
#include "base/error.h"
#include "features/filter_bank.h"
#include "features/mel.h"
#include "features/padding.h"

#include <cmath>
#include <complex>
#include <numbers>

namespace myxtts {
namespace {

using Complex = std::complex<double>;

// Recursive mixed-radix FFT of any length.
void transform(std::vector<Complex>& x) {
  const size_t n = x.size();
  if (n == 1) return;
  size_t radix = 2;
  while (n % radix != 0) ++radix;
  const size_t m = n / radix;
  std::vector<std::vector<Complex>> parts(radix, std::vector<Complex>(m));
  for (size_t i = 0; i < n; ++i) parts[i % radix][i / radix] = x[i];
  for (auto& part : parts) transform(part);
  for (size_t k = 0; k < n; ++k) {
    x[k] = 0;
    for (size_t r = 0; r < radix; ++r) {
      x[k] += parts[r][k % m] *
              std::polar(1.0, -2.0 * std::numbers::pi * static_cast<double>(r * k % n) / static_cast<double>(n));
    }
  }
}

double sample_at(const MelSpec& spec, std::span<const float> samples, int64_t i) {
  const auto length = static_cast<int64_t>(samples.size());
  const bool inside = i >= 0 && i < length;
  if (inside) return samples[static_cast<size_t>(i)];
  if (spec.padding == MelPadding::centre_zeros || spec.padding == MelPadding::end) return 0.0;
  return samples[static_cast<size_t>(reflected_index(i, length))];
}

double logarithm(const MelSpec& spec, double x) {
  if (spec.log == MelLog::none) return x;
  x = std::max(x, spec.log_floor) + spec.log_offset;
  return spec.log == MelLog::ln ? std::log(x) : std::log10(x);
}

void apply_range(const MelSpec& spec, std::vector<double>& values) {
  if (spec.range == MelRange::none || values.empty()) return;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double least = *low, most = *high;
  for (double& x : values) {
    if (spec.range == MelRange::whisper) {
      x = (std::max(x, most - 8.0) + 4.0) / 4.0;
    } else {
      const double share = most > least ? (x - least) / (most - least) : 0.0;
      x = spec.range_low + (spec.range_high - spec.range_low) * share;
    }
  }
}

}  // namespace

Mel mel_reference(const MelSpec& spec, std::span<const float> samples) {
  std::vector<float> levelled(samples.begin(), samples.end());
  if (spec.target_rms > 0) normalise_rms(levelled, spec.target_rms);
  const std::vector<double> window = mel_window(spec);
  const std::vector<MelFilter> filters = mel_filters(spec);
  const int64_t frames = levelled.empty() ? 0 : spec.frames(static_cast<int64_t>(samples.size()));
  std::vector<double> values;
  for (int64_t frame = 0; frame < frames; ++frame) {
    std::vector<Complex> spectrum(window.size());
    for (size_t i = 0; i < window.size(); ++i) {
      const int64_t at = frame * spec.hop_length + spec.first_sample() + static_cast<int64_t>(i);
      spectrum[i] = window[i] * sample_at(spec, levelled, at);
    }
    transform(spectrum);
    for (const MelFilter& filter : filters) {
      double sum = 0;
      for (size_t i = 0; i < filter.weights.size(); ++i) {
        const double power = std::norm(spectrum[static_cast<size_t>(filter.first_bin) + i]);
        sum += filter.weights[i] * (spec.mel_power == 2 ? power : std::sqrt(power + spec.magnitude_epsilon));
      }
      values.push_back((logarithm(spec, sum) - spec.mean) / spec.std);
    }
  }
  apply_range(spec, values);
  return {frames, spec.n_mels, std::vector<float>(values.begin(), values.end())};
}

}  // namespace myxtts
