#include "features/cuda/mel_1024.cuh"
#include "features/cuda/mel_any.cuh"
#include "features/cuda/mel_kernels.h"

#include <algorithm>

namespace myxtts::gpu {
namespace {

// Decodes non-plain clips, averages them to mono and resamples.
__global__ void decode_clips(const __grid_constant__ MelParams p, const __grid_constant__ RateFilters rates,
                             float* decoded) {
  const int index = blockIdx.y;
  const GpuClip clip = p.clips[index];
  if (is_plain(clip, p.sample_rate)) return;
  const int length = length_at(clip, p.sample_rate), frame_bytes = bytes_per_sample(clip.format) * clip.channels;
  const uint8_t* bytes = p.bytes + clip.offset_bytes;
  const RateFilter* filter = nullptr;
  for (int i = 0; i < rates.count; ++i) {
    if (rates.filters[i].sample_rate == clip.sample_rate) filter = &rates.filters[i];
  }
  float* out = decoded + index * p.decoded_stride;
  for (int n = blockIdx.x * blockDim.x + threadIdx.x; n < length && n < p.decoded_stride; n += gridDim.x * blockDim.x) {
    if (filter == nullptr) {
      out[n] = clip.sample_rate == p.sample_rate
                   ? mono_value(clip.format, clip.channels, bytes + static_cast<int64_t>(n) * frame_bytes)
                   : 0.0F;
      continue;
    }
    const int phase = n % filter->phases;
    const int64_t start = static_cast<int64_t>(n / filter->phases) * filter->step + filter->first[phase];
    const float* taps = filter->table + static_cast<int64_t>(phase) * filter->taps;
    float sum = 0.0F;
    for (int k = 0; k < filter->taps; ++k) {
      const int64_t at = start + k;
      if (at >= 0 && at < clip.samples)
        sum += taps[k] * mono_value(clip.format, clip.channels, bytes + at * frame_bytes);
    }
    out[n] = sum;
  }
}

// Samples of each clip, without its gain.
__global__ void copy_samples(const __grid_constant__ MelParams p, float* out, int64_t out_samples) {
  Source source = source_of(p, blockIdx.y);
  source.gain = 0.0F;
  float* const row = out + blockIdx.y * out_samples;
  for (int64_t n = blockIdx.x * blockDim.x + threadIdx.x; n < out_samples; n += gridDim.x * blockDim.x) {
    row[n] = n < source.length ? source.at(static_cast<int>(n)) : 0.0F;
  }
}

constexpr int reduce_threads = 512;

// Gain of each clip for level normalisation, summed in a fixed order.
__global__ void __launch_bounds__(reduce_threads)
    measure_gains(const __grid_constant__ MelParams p, double target, float* gains) {
  __shared__ double sums[reduce_threads];
  Source source = source_of(p, blockIdx.x);
  source.gain = 0.0F;
  double sum = 0;
  for (int i = threadIdx.x; i < source.length; i += reduce_threads) {
    const double x = source.at(i);
    sum += x * x;
  }
  sums[threadIdx.x] = sum;
  for (int half = reduce_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) {
    const double rms = source.length > 0 ? sqrt(sums[0] / source.length) : 0.0;
    gains[blockIdx.x] = rms < 1e-8 ? 1.0F : static_cast<float>(target / rms);
  }
}

// Final normalisation over a whole clip, from float values to `p.out`.
__global__ void __launch_bounds__(reduce_threads)
    apply_range(const __grid_constant__ MelParams p, const float* values, MelRange range, float low, float high) {
  __shared__ float least[reduce_threads], most[reduce_threads];
  const int frames = min(frames_of(p, length_at(p.clips[blockIdx.x], p.sample_rate)), p.out_frames);
  const float* clip = values + static_cast<int64_t>(blockIdx.x) * p.out_frames * p.n_mels;
  float lowest = INFINITY, highest = -INFINITY;
  for (int i = threadIdx.x; i < frames * p.n_mels; i += reduce_threads) {
    lowest = fminf(lowest, clip[i]), highest = fmaxf(highest, clip[i]);
  }
  least[threadIdx.x] = lowest, most[threadIdx.x] = highest;
  for (int half = reduce_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      least[threadIdx.x] = fminf(least[threadIdx.x], least[threadIdx.x + half]);
      most[threadIdx.x] = fmaxf(most[threadIdx.x], most[threadIdx.x + half]);
    }
  }
  __syncthreads();
  lowest = least[0], highest = most[0];
  const float scale = highest > lowest ? (high - low) / (highest - lowest) : 0.0F;
  for (int i = threadIdx.x; i < p.out_frames * p.n_mels; i += reduce_threads) {
    const int frame = i / p.n_mels;
    float x = p.padding;
    if (frame < frames) {
      x = range == MelRange::whisper ? (fmaxf(clip[i], highest - 8.0F) + 4.0F) * 0.25F
                                     : low + (clip[i] - lowest) * scale;
    }
    store(p, blockIdx.x, frame, i % p.n_mels, x);
  }
}

using Kernel1024 = void (*)(MelParams, FilterRounds);
Kernel1024 kernel_1024(const MelParams& params, const FilterRounds& rounds) {
  if (params.bins <= 384 && CommonQuads::fits(params, rounds)) return mel_1024<12, CommonQuads>;
  return rounds.count <= 3 ? mel_1024<16, AnyQuads<3>> : mel_1024<16, AnyQuads<4>>;
}

}  // namespace

cudaError_t plan_launch(const MelParams& params, const FilterRounds& rounds, int device, MelLaunch& launch) {
  const void* kernel = reinterpret_cast<const void*>(mel_any);
  int threads = threads_any;
  launch.shared_bytes = static_cast<int>(2 * params.n_fft * sizeof(float2));
  if (launch.points_1024) {
    kernel = reinterpret_cast<const void*>(kernel_1024(params, rounds));
    threads = 32 * warps_per_block;
    launch.shared_bytes = static_cast<int>(sizeof(Shared1024) + rounds.weights * sizeof(float4));
  }
  int blocks_per_sm = 0, multiprocessors = 0;
  cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, launch.shared_bytes);
  if (status == cudaSuccess) {
    status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_per_sm, kernel, threads,
                                                           static_cast<size_t>(launch.shared_bytes));
  }
  if (status == cudaSuccess) status = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  int major = 0;
  if (status == cudaSuccess) status = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  launch.blocks = std::max(1, blocks_per_sm) * multiprocessors;
  launch.overlaps_previous = major >= 9;
  return status;
}

cudaError_t launch_decode(const MelParams& params, const RateFilters& rates, float* decoded, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(std::max(1, 1024 / params.count)), static_cast<unsigned>(params.count));
  decode_clips<<<grid, 256, 0, stream>>>(params, rates, decoded);
  return cudaGetLastError();
}

cudaError_t launch_samples(const MelParams& params, float* out, int64_t out_samples, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(std::max(1, 1024 / params.count)), static_cast<unsigned>(params.count));
  copy_samples<<<grid, 256, 0, stream>>>(params, out, out_samples);
  return cudaGetLastError();
}

cudaError_t launch_gains(const MelParams& params, double target_rms, float* gains, cudaStream_t stream) {
  measure_gains<<<params.count, reduce_threads, 0, stream>>>(params, target_rms, gains);
  return cudaGetLastError();
}

cudaError_t launch_mel(const MelParams& params, const MelLaunch& launch, const FilterRounds& rounds,
                       const Passes& passes, cudaStream_t stream) {
  const int pairs = (params.out_frames + 1) / 2 * params.count;
  if (launch.points_1024) {
    const int grid = std::min(launch.blocks, (pairs + warps_per_block - 1) / warps_per_block);
    cudaLaunchAttribute overlap{};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(grid)), config.blockDim = dim3(32 * warps_per_block);
    config.dynamicSmemBytes = static_cast<size_t>(launch.shared_bytes), config.stream = stream;
    config.attrs = &overlap, config.numAttrs = launch.overlaps_previous ? 1 : 0;
    return cudaLaunchKernelEx(&config, kernel_1024(params, rounds), params, rounds);
  } else {
    mel_any<<<std::min(launch.blocks, pairs), threads_any, launch.shared_bytes, stream>>>(params, passes);
  }
  return cudaGetLastError();
}

cudaError_t launch_range(const MelParams& params, const float* values, MelRange range, float low, float high,
                         cudaStream_t stream) {
  apply_range<<<params.count, reduce_threads, 0, stream>>>(params, values, range, low, high);
  return cudaGetLastError();
}

}  // namespace myxtts::gpu
