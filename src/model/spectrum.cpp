#include "model/spectrum.h"

#include "base/error.h"

#include <cmath>
#include <numbers>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace myxtts {
namespace {

// Mirrored at the first and the last sample, which are not repeated. Copies alone, so that the gradient is exact.
at::Tensor mirrored(const at::Tensor& samples, int64_t before, int64_t after) {
  const int64_t length = samples.size(1);
  if (std::max(before, after) >= length) fail("spectrum", "{} samples are too few for a window", length);
  std::vector<at::Tensor> parts;
  if (before > 0) parts.push_back(samples.narrow(1, 1, before).flip(1));
  parts.push_back(samples);
  if (after > 0) parts.push_back(samples.narrow(1, length - 1 - after, after).flip(1));
  return parts.size() == 1 ? samples : at::cat(parts, 1);
}

// Sums windows [rows, count, n_fft] where they overlap: [rows, (count - 1) hop + n_fft]. Cut into pieces of a hop, the
// k-th piece of every window belongs k hops later: rows that are longer by one piece than they are read shift by one.
at::Tensor overlapped(const at::Tensor& windows, const Frames& frames) {
  const int64_t rows = windows.size(0), count = windows.size(1), hop = frames.hop_length;
  const int64_t pieces = (frames.n_fft + hop - 1) / hop, length = (count - 1) * hop + frames.n_fft;
  const at::Tensor whole =
      pieces * hop == frames.n_fft ? windows : at::constant_pad_nd(windows, {0, pieces * hop - frames.n_fft});
  const at::Tensor by_piece = whole.view({rows, count, pieces, hop}).transpose(1, 2);
  const at::Tensor longer =
      at::constant_pad_nd(by_piece, {0, 0, 0, pieces}).view({rows, pieces * (count + pieces), hop});
  return longer.narrow(1, 0, pieces * (count + pieces - 1))
      .view({rows, pieces, (count + pieces - 1) * hop})
      .sum(1)
      .narrow(1, 0, length);
}

// A product of its size is hidden by those of a GPU. On a CPU it would be half the work of a small vocoder.
bool is_faster_by_fft(const at::Tensor& spectrum) { return spectrum.is_cpu() && !at::GradMode::is_enabled(); }

at::Tensor inverse_by_fft(const SpectrumTables& tables, const at::Tensor& spectrum) {
  const std::vector<at::Tensor> parts = spectrum.chunk(2, -1);
  return at::fft_irfft(at::complex(parts[0], parts[1]), tables.frames.n_fft) * tables.window;
}

}  // namespace

Frames centred_frames(int64_t n_fft, int64_t hop_length) { return {n_fft, hop_length, n_fft, -n_fft / 2}; }

SpectrumTables make_spectrum_tables(const Frames& frames, at::Device device) {
  const int64_t n = frames.n_fft, bins = n / 2 + 1, offset = (n - frames.win_length) / 2;
  const auto doubles = at::TensorOptions(at::kDouble);
  const at::Tensor window = at::zeros({n}, doubles);
  for (int64_t i = 0; i < frames.win_length; ++i) {
    const double phase = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(frames.win_length);
    window[offset + i] = 0.5 - 0.5 * std::cos(phase);
  }
  const at::Tensor angle =
      at::outer(at::arange(bins, doubles), at::arange(n, doubles)).remainder(static_cast<double>(n)) *
      (2 * std::numbers::pi / static_cast<double>(n));
  at::Tensor weight = at::full({bins, 1}, 2.0, doubles);  // of a bin and its mirror image
  weight[0][0] = 1;
  if (n % 2 == 0) weight[bins - 1][0] = 1;
  const auto finished = [&](const at::Tensor& table) { return table.to(at::kFloat).to(device); };
  SpectrumTables tables{frames, {}, {}, finished(window)};
  tables.analysis = finished(at::cat({angle.cos(), -angle.sin()}) * window);
  tables.synthesis = finished(at::cat({angle.cos() * weight, -angle.sin() * weight}) * window / static_cast<double>(n));
  return tables;
}

at::Tensor spectrum(const SpectrumTables& tables, const at::Tensor& samples, int64_t count) {
  const Frames& frames = tables.frames;
  const int64_t end = frames.first + (count - 1) * frames.hop_length + frames.n_fft;
  const at::Tensor padded =
      mirrored(samples, std::max<int64_t>(0, -frames.first), std::max<int64_t>(0, end - samples.size(1)));
  const at::Tensor used = padded.narrow(1, 0, end - std::min<int64_t>(0, frames.first));
  return at::matmul(used.unfold(1, frames.n_fft, frames.hop_length), tables.analysis.t());
}

at::Tensor magnitudes(const at::Tensor& spectrum) {
  constexpr double floor = 1e-9;
  const std::vector<at::Tensor> parts = spectrum.chunk(2, -1);
  return (parts[0].square() + parts[1].square() + floor).sqrt();
}

at::Tensor from_spectrum(const SpectrumTables& tables, const at::Tensor& spectrum, int64_t samples,
                         const at::Tensor& valid) {
  const Frames& frames = tables.frames;
  const int64_t first = -frames.first, count = spectrum.size(1);
  if (first < 0 || first + samples > (count - 1) * frames.hop_length + frames.n_fft) {
    fail("spectrum", "{} windows do not cover {} samples", count, samples);
  }
  constexpr double floor = 1e-3;  // where hardly any window reaches
  const at::Tensor square = tables.window.square().expand({1, count, frames.n_fft});
  const at::Tensor heard = valid.defined() ? spectrum * valid : spectrum;
  const at::Tensor windows =
      is_faster_by_fft(heard) ? inverse_by_fft(tables, heard) : at::matmul(heard, tables.synthesis);
  const at::Tensor sum = overlapped(windows, frames);
  const at::Tensor cover = overlapped(valid.defined() ? square * valid : square, frames);
  return (sum / cover.clamp_min(floor)).narrow(1, first, samples);
}

}  // namespace myxtts
