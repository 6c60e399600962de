// Device functions shared by all mel kernels: sample access, logarithm, row store, and a filter in double.
#pragma once

#include "features/cuda/mel_kernels.h"
#include "features/padding.h"
#include "features/rounding.h"

#include <cuda_bf16.h>

namespace myxtts::gpu {

// View of a clip: PCM16 directly from the batch bytes, or previously decoded floats.
struct Source {
  const int16_t* pcm;  // null: decoded
  const float* decoded;
  float gain;  // 0: none
  int length;

  __device__ float at(int i) const {
    const float x = pcm != nullptr ? static_cast<float>(pcm[i]) * (1.0F / 32768.0F) : decoded[i];
    return gain == 0.0F ? x : fminf(fmaxf(x * gain, -1.0F), 1.0F);
  }
  // Applies the padding of the convention.
  __device__ float padded(int i, bool zeros) const {
    if (i >= 0 && i < length) return at(i);
    return zeros ? 0.0F : at(static_cast<int>(reflected_index(i, length)));
  }
};

__device__ inline bool is_plain(const GpuClip& clip, int sample_rate) {
  return clip.format == SampleFormat::pcm_16 && clip.channels == 1 && clip.sample_rate == sample_rate &&
         clip.offset_bytes % 2 == 0;
}

__device__ inline int length_at(const GpuClip& clip, int sample_rate) {
  if (clip.sample_rate == sample_rate) return static_cast<int>(clip.samples);
  return static_cast<int>((static_cast<uint64_t>(clip.samples) * sample_rate + clip.sample_rate - 1) /
                          clip.sample_rate);
}

__device__ inline Source source_of(const MelParams& p, int index) {
  const GpuClip clip = p.clips[index];
  Source source{};
  source.length = length_at(clip, p.sample_rate);
  if (is_plain(clip, p.sample_rate)) {
    source.pcm = reinterpret_cast<const int16_t*>(p.bytes + clip.offset_bytes);
  } else {
    source.decoded = p.decoded + index * p.decoded_stride;
  }
  source.gain = p.gains == nullptr ? 0.0F : p.gains[index];
  return source;
}

__device__ inline int frames_of(const MelParams& p, int length) {
  if (length == 0) return 0;
  if (p.centred) return length / p.hop + (p.drop_last_frame ? 0 : 1);
  return p.hifigan ? length / p.hop : (length + p.hop - 1) / p.hop;
}

__device__ inline void store(const MelParams& p, int clip, int frame, int mel, float value) {
  const int64_t at = (static_cast<int64_t>(clip) * p.out_frames + frame) * p.n_mels + mel;
  if (p.bfloat16) {
    static_cast<__nv_bfloat16*>(p.out)[at] = __float2bfloat16(value);
  } else {
    static_cast<float*>(p.out)[at] = value;
  }
}

__device__ inline float fast_root(float x) {
  float root;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
  return root;
}

// Maps a filter output to the stored value.
__device__ inline float finish(const MelParams& p, float sum) {
  if (p.log) asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(sum) : "f"(fmaxf(sum, p.floor) + p.offset));
  return sum * p.scale + p.shift;
}

// Computes one stored value in double, from magnitudes in shared memory `stride` apart.
__device__ inline float exact_value(const MelParams& p, int mel, const double* magnitude, int stride) {
  double sum = 0;
  for (int i = 0; i < p.taps[mel]; ++i) {
    sum += p.exact_weights[p.weights_at[mel] + i] * magnitude[stride * (p.first_bin[mel] + i)];
  }
  const double value = p.log ? log(fmax(sum, p.exact_floor) + p.exact_offset) * p.exact_log_scale : sum;
  return static_cast<float>(value * p.exact_scale + p.exact_shift);
}

__device__ inline double exact_magnitude(const MelParams& p, double re, double im) {
  const double power = re * re + im * im;
  return p.power ? power : sqrt(power + p.exact_epsilon);
}

}  // namespace myxtts::gpu
