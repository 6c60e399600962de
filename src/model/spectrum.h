// Short-time spectra as matrix products, differentiable: float [rows, samples] to frames and back. Everything is a
// product, a copy or an overlapping sum, so gradients are deterministic and may be captured. On a CPU, without
// gradients, the way back is an FFT. Any thread.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace myxtts {

// Windows of n_fft samples (Hann), one every hop_length; `first` is the first sample of the first window.
struct Frames {
  int64_t n_fft = 0, hop_length = 0, win_length = 0, first = 0;
};

// Of windows that are centred on multiples of the hop.
Frames centred_frames(int64_t n_fft, int64_t hop_length);

// Tables for one device, made once.
struct SpectrumTables {
  Frames frames;
  at::Tensor analysis;   // [2 bins, n_fft]: cosines, then sines, windowed
  at::Tensor synthesis;  // [2 bins, n_fft]: the inverse, windowed
  at::Tensor window;     // [n_fft]
};
SpectrumTables make_spectrum_tables(const Frames& frames, at::Device device);

// Real and imaginary parts [rows, count, 2 bins]. Samples beyond both ends are those before them, mirrored.
at::Tensor spectrum(const SpectrumTables& tables, const at::Tensor& samples, int64_t count);
// Magnitudes [rows, count, bins]; differentiable where they are zero.
at::Tensor magnitudes(const at::Tensor& spectrum);

// The inverse of spectrum(): [rows, samples], weighted least squares where windows overlap. `valid`, float
// [rows, count, 1], is 0 for windows that are not there; undefined: all are.
at::Tensor from_spectrum(const SpectrumTables& tables, const at::Tensor& spectrum, int64_t samples,
                         const at::Tensor& valid = {});

}  // namespace myxtts
