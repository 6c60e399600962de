// What the mel kernels are given, and how the host launches them. Plain structs and functions, so that only the kernels
// themselves need nvcc.
#pragma once

#include "features/mel_gpu.h"

#include <cuda_runtime_api.h>

namespace myxtts::gpu {

struct MelParams {
  // The batch.
  const uint8_t* bytes;
  const GpuClip* clips;
  int count;
  const float* decoded;  // [count, decoded_stride]: clips that are not plain, at the preset's rate
  int64_t decoded_stride;
  const float* gains;  // one a clip, or null
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
  const float2* turns;  // e^(-2 pi i k / n_fft)
  const double2* exact_turns;
  const int* first_bin;  // per filter
  const int* taps;
  const int* weights_at;
  const float* weights;
  const double* exact_weights;
  const float* doubt_shares;  // per filter, or null; see rounding.h
};

// The filters dealt out to the lanes of a warp, in rounds of equal work. A round of few, wide filters gives each of
// them to several lanes.
constexpr int min_rounds = 3, max_rounds = 4;
constexpr int max_clips_1024 = 512;  // that one launch of the kernel for 1024 points takes
struct FilterLane {
  int16_t first_bin;
  int16_t mel;        // -1: none
  float doubt_share;  // 0: never in doubt
};
struct FilterRounds {
  int count;
  int quads[max_rounds];       // taps / 4 of every lane, with weight 0 where its filter has fewer
  int lanes_each[max_rounds];  // lanes that share a filter: a power of two
  int weights;                 // float4 in all
  const FilterLane* lanes;     // [count][32]
  const float4* table;         // [round][quad][32]
};

constexpr int max_passes = 8;

struct Passes {
  int count;
  int radix[max_passes];
};

constexpr int max_rates = 16;
constexpr int64_t max_filter_taps = int64_t{1} << 24;

// The resampling filter of one source rate, on the device.
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

// How the mel kernel of this convention is launched.
struct MelLaunch {
  bool points_1024 = false;  // the kernel made for 1024 points with a hop of 256
  int blocks = 0;
  int shared_bytes = 0;
  bool overlaps = false;  // the card can begin a launch while the one before it ends
};
cudaError_t plan_launch(const MelParams& params, const FilterRounds& rounds, int device, MelLaunch& launch);

cudaError_t launch_decode(const MelParams& params, const RateFilters& rates, float* decoded, cudaStream_t stream);
cudaError_t launch_gains(const MelParams& params, double target_rms, float* gains, cudaStream_t stream);
cudaError_t launch_mel(const MelParams& params, const MelLaunch& launch, const FilterRounds& rounds,
                       const Passes& passes, cudaStream_t stream);
cudaError_t launch_range(const MelParams& params, const float* values, MelRange range, float low, float high,
                         cudaStream_t stream);

}  // namespace myxtts::gpu
