// Parameters and launch functions of the mel kernels. Plain structs, so that only the kernels need nvcc. The caller
// owns all device memory; launches are asynchronous on `stream`.
#pragma once

#include "features/mel_gpu.h"

#include <cuda_runtime_api.h>

namespace myxtts::gpu {

struct MelParams {
  // The batch.
  const uint8_t* bytes;
  const GpuClip* clips;
  int count;
  const float* decoded;  // [count, decoded_stride]: decoded non-plain clips, at the rate of the preset
  int64_t decoded_stride;
  const float* gains;  // one per clip, or null
  void* out;
  int out_frames;
  bool bfloat16;
  float padding;

  // The convention.
  int sample_rate, n_fft, hop, first_sample, n_mels, bins;
  bool pad_zeros, drop_last_frame, centred, hifigan, power, log;
  float epsilon, floor, offset, scale, shift;
  double exact_epsilon, exact_floor, exact_offset, exact_log_scale, exact_scale, exact_shift;

  // Tables.
  const float* window;  // [n_fft]
  const double* exact_window;
  const float2* twiddles;  // e^(-2 pi i k / n_fft)
  const double2* exact_twiddles;
  const int* first_bin;  // per filter
  const int* taps;
  const int* weights_at;
  const float* weights;
  const double* exact_weights;
  const float* rounding_thresholds;  // per filter, or null; see rounding.h
};

// Filters scheduled on the lanes of a warp, in rounds of equal work. Wide filters are split over several lanes.
constexpr int min_rounds = 3, max_rounds = 4;
constexpr int max_clips_1024 = 512;  // per launch of the 1024-point kernel
struct FilterLane {
  int16_t first_bin;
  int16_t mel;               // -1: none
  float rounding_threshold;  // 0: never needs double
};
struct FilterRounds {
  int count;
  int quads[max_rounds];             // taps / 4 per lane, zero-padded
  int lanes_per_filter[max_rounds];  // lanes per filter, a power of two
  int weights;                       // total number of float4
  const FilterLane* lanes;           // [count][32]
  const float4* table;               // [round][quad][32]
};

constexpr int max_passes = 8;

struct Passes {
  int count;
  int radix[max_passes];
};

constexpr int max_rates = 16;
constexpr int64_t max_filter_taps = int64_t{1} << 24;

// Polyphase resampling filter of one source rate, in device memory.
struct RateFilter {
  int sample_rate;
  int phases, step, taps;
  const int* first;    // per phase
  const float* table;  // [phases][taps]
};
struct RateFilters {
  int count;
  RateFilter filters[max_rates];
};

// Launch configuration of the mel kernel.
struct MelLaunch {
  bool points_1024 = false;  // the kernel for 1024 points and hop 256
  int blocks = 0;
  int shared_bytes = 0;
  bool overlaps_previous = false;  // the GPU supports programmatic dependent launch
};
cudaError_t plan_launch(const MelParams& params, const FilterRounds& rounds, int device, MelLaunch& launch);

cudaError_t launch_decode(const MelParams& params, const RateFilters& rates, float* decoded, cudaStream_t stream);
cudaError_t launch_samples(const MelParams& params, float* out, int64_t out_samples, cudaStream_t stream);
cudaError_t launch_gains(const MelParams& params, double target_rms, float* gains, cudaStream_t stream);
cudaError_t launch_mel(const MelParams& params, const MelLaunch& launch, const FilterRounds& rounds,
                       const Passes& passes, cudaStream_t stream);
cudaError_t launch_range(const MelParams& params, const float* values, MelRange range, float low, float high,
                         cudaStream_t stream);

}  // namespace myxtts::gpu
