#include "train/loudness.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/ATen.h>

namespace myxtts {
namespace {

// The scale of critical bands (Traunmüller, 1990).
double bark(double hz) { return 26.81 * hz / (1960 + hz) - 0.53; }

}  // namespace

LoudnessTables make_loudness_tables(int sample_rate, at::Device device) {
  constexpr int64_t n_fft = 1024, hop = 256;
  LoudnessTables tables{make_spectrum_tables(centred_frames(n_fft, hop), device), {}};
  const auto hz_of = [&](int64_t bin) { return static_cast<double>(bin) * sample_rate / n_fft; };
  const auto band_of = [&](int64_t bin) { return std::max<int64_t>(0, std::llround(bark(hz_of(bin)))); };
  constexpr int64_t bins = n_fft / 2 + 1, first = 2;  // below is hardly heard
  at::Tensor bands = at::zeros({bins, band_of(bins - 1) + 1});
  for (int64_t bin = first; bin < bins; ++bin) bands[bin][band_of(bin)] = 1;
  tables.bands = bands.to(device);
  return tables;
}

at::Tensor loudness_distance(const LoudnessTables& tables, const at::Tensor& made, const at::Tensor& real) {
  constexpr double exponent = 0.23;   // of loudness over power (Zwicker)
  constexpr double threshold = 1e-4;  // of hearing, against the recording's mean: 40 dB below
  constexpr double dead_zone = 0.25;  // of the softer one
  constexpr double asymmetry = 1.2, offset = 0.1;
  const int64_t count = real.size(1) / tables.spectrum.frames.hop_length + 1;
  const auto power = [&](const at::Tensor& wave) {
    return at::matmul(magnitudes(spectrum(tables.spectrum, wave, count)).square(), tables.bands);
  };
  const at::Tensor of_real = power(real), level = of_real.mean({1, 2}, true).clamp_min(1e-12);
  const auto loudness = [&](const at::Tensor& of) {
    return (of / level + threshold).pow(exponent) - std::pow(threshold, exponent);
  };
  const at::Tensor heard = loudness(power(made)), wanted = loudness(of_real);
  const at::Tensor apart = ((heard - wanted).abs() - dead_zone * at::minimum(heard, wanted)).clamp_min(0);
  const at::Tensor weight = ((heard + offset) / (wanted + offset)).clamp_min(1).pow(asymmetry);
  const at::Tensor of_frames = (apart * weight).square().mean(-1).sqrt();
  return of_frames.mean(-1) / wanted.square().mean({1, 2}).sqrt().clamp_min(1e-6);
}

}  // namespace myxtts
