// Mel kernel for any other n_fft: a block computes two neighbouring frames as one complex FFT in shared memory.
#pragma once

#include "features/cuda/mel_device.cuh"
#include "features/cuda/transform_any.cuh"

namespace myxtts::gpu {

constexpr int threads_any = 128;

// DFT of one frame in double by Horner's rule, one bin per thread: slow, but rarely needed. `buffer` is shared memory
// for n_fft doubles.
__device__ __noinline__ void exact_frame(const MelParams& p, const Source& source, int clip, int frame,
                                         double* buffer) {
  constexpr int bins_each = 8192 / 2 / threads_any + 1;
  const int start = frame * p.hop + p.first_sample;
  __syncthreads();
  for (int i = threadIdx.x; i < p.n_fft; i += threads_any) {
    buffer[i] = p.exact_window[i] * static_cast<double>(source.padded(start + i, p.pad_zeros));
  }
  __syncthreads();
  // Keep the bins in local memory until all threads have read the samples.
  double magnitude[bins_each];
  int own = 0;
  for (int k = threadIdx.x; k < p.bins; k += threads_any, ++own) {
    const double2 twiddle = p.exact_twiddles[k];
    double re = 0, im = 0;
    for (int i = p.n_fft - 1; i >= 0; --i) {
      const double next = fma(re, twiddle.x, fma(-im, twiddle.y, buffer[i]));
      im = fma(re, twiddle.y, im * twiddle.x);
      re = next;
    }
    magnitude[own] = exact_magnitude(p, re, im);
  }
  __syncthreads();
  own = 0;
  for (int k = threadIdx.x; k < p.bins; k += threads_any, ++own) buffer[k] = magnitude[own];
  __syncthreads();
  for (int mel = threadIdx.x; mel < p.n_mels; mel += threads_any) {
    store(p, clip, frame, mel, exact_value(p, mel, buffer, 1));
  }
  __syncthreads();
}

__global__ void __launch_bounds__(threads_any)
    mel_any(const __grid_constant__ MelParams p, const __grid_constant__ Passes passes) {
  extern __shared__ float4 shared[];
  float2* in = reinterpret_cast<float2*>(shared);
  float2* out = in + p.n_fft;
  const int pairs = (p.out_frames + 1) / 2, total = pairs * p.count;
  for (int item = blockIdx.x; item < total; item += gridDim.x) {
    const int clip = item / pairs, frame = 2 * (item % pairs);
    const Source source = source_of(p, clip);
    const int frames = frames_of(p, source.length);
    if (frame >= frames) {
      for (int f = frame; f < min(frame + 2, p.out_frames); ++f) {
        for (int mel = threadIdx.x; mel < p.n_mels; mel += threads_any) store(p, clip, f, mel, p.padding);
      }
      continue;
    }
    const int start = frame * p.hop + p.first_sample;
    __shared__ float energy_of_warp[threads_any / 32];
    float energy = 0.0F;
    for (int i = threadIdx.x; i < p.n_fft; i += threads_any) {
      const float w = 0.5F * p.window[i];
      const float a = w * source.padded(start + i, p.pad_zeros), b = w * source.padded(start + p.hop + i, p.pad_zeros);
      in[i] = make_float2(a, b);
      energy += 4.0F * (a * a + b * b);
    }
    for (int step = 1; step < 32; step *= 2) energy += __shfl_xor_sync(0xFFFFFFFF, energy, step);
    if (threadIdx.x % 32 == 0) energy_of_warp[threadIdx.x / 32] = energy;
    __syncthreads();
    energy = energy_of_warp[0] + energy_of_warp[1] + energy_of_warp[2] + energy_of_warp[3];
    int groups = p.n_fft, stride = 1;
    for (int pass = 0; pass < passes.count; ++pass) {
      const int radix = passes.radix[pass];
      groups /= radix;
      switch (radix) {
        case 2:
          transform_pass<2>(p.twiddles, p.n_fft, in, out, groups, stride);
          break;
        case 3:
          transform_pass<3>(p.twiddles, p.n_fft, in, out, groups, stride);
          break;
        case 4:
          transform_pass<4>(p.twiddles, p.n_fft, in, out, groups, stride);
          break;
        case 5:
          transform_pass<5>(p.twiddles, p.n_fft, in, out, groups, stride);
          break;
        default:
          transform_pass<8>(p.twiddles, p.n_fft, in, out, groups, stride);
          break;
      }
      stride *= radix;
      float2* const swap = in;
      in = out, out = swap;
    }
    for (int k = threadIdx.x; k < p.bins; k += threads_any) {
      const float2 a = in[k], b = in[(p.n_fft - k) % p.n_fft];
      const float ar = a.x + b.x, ai = a.y - b.y, br = a.y + b.y, bi = b.x - a.x;
      float first = ar * ar + ai * ai, second = br * br + bi * bi;
      if (!p.power) first = fast_root(first + p.epsilon), second = fast_root(second + p.epsilon);
      out[k] = make_float2(first, second);
    }
    __syncthreads();
    bool rough = false;
    const float spectrum_rms = fast_root(energy);
    for (int mel = threadIdx.x; mel < p.n_mels; mel += threads_any) {
      float first = 0.0F, second = 0.0F;
      for (int i = 0; i < p.taps[mel]; ++i) {
        const float2 both = out[p.first_bin[mel] + i];
        const float w = p.weights[p.weights_at[mel] + i];
        first = fmaf(w, both.x, first), second = fmaf(w, both.y, second);
      }
      if (p.rounding_thresholds != nullptr) {
        rough |=
            needs_double(fminf(first, second), p.floor + p.offset, spectrum_rms, p.rounding_thresholds[mel], p.power);
      }
      store(p, clip, frame, mel, finish(p, first));
      if (frame + 1 < p.out_frames) store(p, clip, frame + 1, mel, frame + 1 < frames ? finish(p, second) : p.padding);
    }
    if (__syncthreads_or(rough)) {
      for (int f = frame; f < min(frame + 2, min(frames, p.out_frames)); ++f) {
        exact_frame(p, source, clip, f, reinterpret_cast<double*>(in));
      }
    }
    __syncthreads();
  }
}

}  // namespace myxtts::gpu
