// Mel kernel for n_fft = 1024 and hop 256, which nearly every preset uses.
//
// A warp computes two neighbouring frames as the real and imaginary part of one complex FFT of 1024 = 32 x 32 points.
// Lane j holds samples j, j+32, ... in registers: 32-point FFT, twiddles, transpose through shared memory, 32-point
// FFT. Bin k = lane + 32 m is then in register m. The hop is 8 x 32 samples, so 40 loads per lane serve both frames.
// The two spectra are separated by symmetry, and only for bins that a filter uses.
//
// Samples are in 16-bit units; the window table scales them to [-1, 1], with a factor 1/2 for the separation. The
// second half of a Hann window is 1 minus the first, so half a table is enough.
#pragma once

#include "features/cuda/mel_device.cuh"
#include "features/cuda/transform_32.cuh"
#include "features/cuda/transform_any.cuh"

namespace myxtts::gpu {

// One block per SM: 128 registers per thread, as the FFT needs.
constexpr int warps_per_block = 16;
constexpr int row_stride = 34;  // row stride of the transpose: conflict-free 16-byte row reads and 8-byte column writes
constexpr float sample_steps = 32768.0F;

// A clip of the batch, loaded once per block.
struct ClipLine {
  const void* samples;  // int16, or float if `frames` is negative
  int length;
  int frames;  // ~frames for floats

  __device__ Source source(float gain) const {
    const bool pcm = frames >= 0;
    return {pcm ? static_cast<const int16_t*>(samples) : nullptr, pcm ? nullptr : static_cast<const float*>(samples),
            gain, length};
  }
  __device__ int frame_count() const { return frames >= 0 ? frames : ~frames; }
};

// Shared memory of a block: tables, then a transpose buffer per warp.
struct Shared1024 {
  float4 twiddles[16][32];  // [j / 2][lane]: e^(-2 pi i lane j / 1024) of j and j + 1
  float window[16][32];     // [i][lane]: of sample 32 i + lane
  ClipLine clips[max_clips_1024];
  FilterLane lanes[max_rounds][32];
  unsigned needs_double_bits[warps_per_block];  // a bit for each of a warp's last 32 pairs
  alignas(16) float2 exchange[warps_per_block][32 * row_stride];
  // float4 weights[] follow
};

__device__ inline float gain_of(const MelParams& p, int clip) { return p.gains == nullptr ? 0.0F : p.gains[clip]; }

// Loads eight samples 32 apart from a clip shorter than a pair of frames. Not inlined, because it is long and rare.
__device__ __noinline__ void padded_samples(const Source& source, int start, bool zeros, float (&out)[8]) {
#pragma unroll
  for (int k = 0; k < 8; ++k) out[k] = source.padded(start + 32 * k, zeros);
}

// Loads the 40 samples of this lane for a pair of frames, in 16-bit units.
__device__ inline void load_pair(const MelParams& p, const ClipLine& clip, float gain, int start, int lane,
                                 float (&x)[40]) {
  const bool inside = start >= 0 && start + 1280 <= clip.length;
  if (inside && clip.frames >= 0 && gain == 0.0F) {
    const int16_t* at = static_cast<const int16_t*>(clip.samples) + start + lane;
#pragma unroll
    for (int i = 0; i < 40; ++i) {
      int sample = __ldg(at + 32 * i);
      asm("" : "+r"(sample));  // convert from 32 bits: from 16 bits is four times slower
      x[i] = static_cast<float>(sample);
    }
    return;
  }
  const Source source = clip.source(gain);
  if (inside) {
#pragma unroll
    for (int i = 0; i < 40; ++i) x[i] = sample_steps * source.at(start + lane + 32 * i);
    return;
  }
  if (clip.length >= 1280) {  // one reflection is enough
#pragma unroll
    for (int i = 0; i < 40; ++i) {
      const int at = start + lane + 32 * i, folded = min(abs(at), 2 * (clip.length - 1) - abs(at));
      x[i] = p.pad_zeros && at != folded ? 0.0F : sample_steps * source.at(max(folded, 0));
    }
    return;
  }
#pragma unroll
  for (int block = 0; block < 5; ++block) {
    float eight[8];
    padded_samples(source, start + lane + 256 * block, p.pad_zeros, eight);
#pragma unroll
    for (int k = 0; k < 8; ++k) x[8 * block + k] = sample_steps * eight[k];
  }
}

// Prefetches the samples of a later pair into the cache, one line per lane.
__device__ inline void prefetch_pair(const ClipLine& clip, int start, int lane) {
  const int at = start + 64 * lane;
  if (lane > 20 || clip.frames < 0 || at < 0 || at >= clip.length) return;
  asm volatile("prefetch.global.L1 [%0];" ::"l"(static_cast<const int16_t*>(clip.samples) + at));
}

// Multiplies two complex numbers by their twiddles.
__device__ inline float4 times_twiddles(float4 x, float4 twiddle) {
  return make_float4(x.x * twiddle.x - x.y * twiddle.y, x.x * twiddle.y + x.y * twiddle.x,
                     x.z * twiddle.z - x.w * twiddle.w, x.z * twiddle.w + x.w * twiddle.z);
}

// FFT: windowed samples to bins lane + 32 m of the complex spectrum.
__device__ inline void transform_1024(const float (&x)[40], const Shared1024& shared, float2* exchange, int lane,
                                      float (&re)[32], float (&im)[32]) {
  {
    float sr[16], si[16], dr[16], di[16];
    constexpr float whole = 0.5F / sample_steps;  // sum of the two window halves
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const float w = shared.window[i][lane], v = whole - w;
      const float a = x[i] * w, b = x[i + 8] * w;
      sr[i] = fmaf(x[i + 16], v, a), dr[i] = fmaf(-x[i + 16], v, a);
      si[i] = fmaf(x[i + 24], v, b), di[i] = fmaf(-x[i + 24], v, b);
    }
    transform_32(sr, si, dr, di, re, im);
  }
#pragma unroll
  for (int c = 0; c < 32; ++c) exchange[c * row_stride + lane] = make_float2(re[c], im[c]);
  __syncwarp();
  const float4* row = reinterpret_cast<const float4*>(exchange + lane * row_stride);
  {
    float sr[16], si[16], dr[16], di[16];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float4 a = times_twiddles(row[j], shared.twiddles[j][lane]);  // points 2j and 2j + 1
      const float4 b = times_twiddles(row[j + 8], shared.twiddles[j + 8][lane]);
      sr[2 * j] = a.x + b.x, si[2 * j] = a.y + b.y, dr[2 * j] = a.x - b.x, di[2 * j] = a.y - b.y;
      sr[2 * j + 1] = a.z + b.z, si[2 * j + 1] = a.w + b.w, dr[2 * j + 1] = a.z - b.z, di[2 * j + 1] = a.w - b.w;
    }
    __syncwarp();
    transform_32(sr, si, dr, di, re, im);
  }
}

// Filter rounds of common presets as compile-time constants, and of any other at run time.
struct CommonQuads {
  static constexpr int rounds = 3;
  __device__ static constexpr int count(const FilterRounds&, int round) { return round == 0 ? 1 : 4; }
  __device__ static constexpr int lanes_per_filter(const FilterRounds&, int round) { return round == 2 ? 2 : 1; }
  __device__ static constexpr bool power(const MelParams&) { return false; }
  static bool fits(const MelParams& p, const FilterRounds& filters) {
    const int* q = filters.quads;
    const int* l = filters.lanes_per_filter;
    return !p.power && filters.count == 3 && q[0] == 1 && q[1] == 4 && q[2] == 4 && l[0] == 1 && l[1] == 1 && l[2] == 2;
  }
};
template <int wanted_rounds>
struct AnyQuads {
  static constexpr int rounds = wanted_rounds;
  __device__ static int count(const FilterRounds& filters, int round) { return filters.quads[round]; }
  __device__ static int lanes_per_filter(const FilterRounds& filters, int round) {
    return filters.lanes_per_filter[round];
  }
  __device__ static bool power(const MelParams& p) { return p.power; }
};

// Writes magnitudes (or powers) of both frames for bins below 32 * rows, interleaved in shared memory.
template <int rows, typename Quads>
__device__ inline void magnitudes(const MelParams& p, const float (&re)[32], const float (&im)[32], float2* out,
                                  int lane) {
  const int partner = (32 - lane) % 32;
#pragma unroll
  for (int m = 0; m < rows; ++m) {
    float other_re = __shfl_sync(0xFFFFFFFF, re[31 - m], partner);
    float other_im = __shfl_sync(0xFFFFFFFF, im[31 - m], partner);
    if (lane == 0) other_re = re[(32 - m) % 32], other_im = im[(32 - m) % 32];
    const float ar = re[m] + other_re, ai = im[m] - other_im, br = im[m] + other_im, bi = other_re - re[m];
    float first = ar * ar + ai * ai, second = br * br + bi * bi;
    if (!Quads::power(p)) first = fast_root(first + p.epsilon), second = fast_root(second + p.epsilon);
    out[32 * m + lane] = make_float2(first, second);
  }
}

// Applies filters and logarithm to both frames. Returns whether either needs double.
template <typename Quads>
__device__ inline bool filter_pair(const MelParams& p, const FilterRounds& filters,
                                   const FilterLane (&lanes)[max_rounds][32], const float4* weights,
                                   const float2* magnitude, float spectrum_rms, int64_t row, bool second_row,
                                   bool second_frame, int lane) {
  FilterLane own[Quads::rounds];
#pragma unroll
  for (int round = 0; round < Quads::rounds; ++round) own[round] = lanes[round][lane];
  // Compute the sums of all rounds first, so that their loads overlap.
  float first[Quads::rounds], second[Quads::rounds];
#pragma unroll
  for (int round = 0; round < Quads::rounds; ++round) {
    first[round] = second[round] = 0.0F;
    const float2* at = magnitude + own[round].first_bin;
    const int quads = Quads::count(filters, round);
#pragma unroll
    for (int quad = 0; quad < quads; ++quad, at += 4, weights += 32) {
      const float4 w = weights[lane];
      const float2 a = at[0], b = at[1], c = at[2], d = at[3];
      first[round] = fmaf(w.x, a.x, first[round]), second[round] = fmaf(w.x, a.y, second[round]);
      first[round] = fmaf(w.y, b.x, first[round]), second[round] = fmaf(w.y, b.y, second[round]);
      first[round] = fmaf(w.z, c.x, first[round]), second[round] = fmaf(w.z, c.y, second[round]);
      first[round] = fmaf(w.w, d.x, first[round]), second[round] = fmaf(w.w, d.y, second[round]);
    }
  }
  bool rough = false;
#pragma unroll
  for (int round = 0; round < Quads::rounds; ++round) {
    for (int step = 1; step < Quads::lanes_per_filter(filters, round); step *= 2) {
      first[round] += __shfl_xor_sync(0xFFFFFFFF, first[round], step);
      second[round] += __shfl_xor_sync(0xFFFFFFFF, second[round], step);
    }
    rough |= needs_double(fminf(first[round], second[round]), p.floor + p.offset, spectrum_rms,
                          own[round].rounding_threshold, Quads::power(p));
    first[round] = finish(p, first[round]);
    second[round] = second_frame ? finish(p, second[round]) : p.padding;
  }
  // Lanes that share a filter write the same value.
  if (p.bfloat16) {
    __nv_bfloat16* out = static_cast<__nv_bfloat16*>(p.out) + row;
#pragma unroll
    for (int round = 0; round < Quads::rounds; ++round) {
      if (own[round].mel >= 0) out[own[round].mel] = __float2bfloat16(first[round]);
      if (own[round].mel >= 0 && second_row) out[own[round].mel + p.n_mels] = __float2bfloat16(second[round]);
    }
  } else {
    float* out = static_cast<float*>(p.out) + row;
#pragma unroll
    for (int round = 0; round < Quads::rounds; ++round) {
      if (own[round].mel >= 0) out[own[round].mel] = first[round];
      if (own[round].mel >= 0 && second_row) out[own[round].mel + p.n_mels] = second[round];
    }
  }
  return __any_sync(0xFFFFFFFF, rough);
}

// Recomputes a pair in double with the whole block, for the few that need it. `buffers` holds 2 x 1024 points.
__device__ __noinline__ void exact_pair(const MelParams& p, const Source& source, int clip, int frame, int frames,
                                        double2* buffers) {
  const int start = 256 * frame + p.first_sample;
  double2 *in = buffers, *out = buffers + 1024;
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) {
    const double w = 0.5 * p.exact_window[i];
    in[i] = {w * source.padded(start + i, p.pad_zeros), w * source.padded(start + 256 + i, p.pad_zeros)};
  }
  __syncthreads();
  for (int stride = 1; stride < 1024; stride *= 4) {
    transform_pass<4>(p.exact_twiddles, 1024, in, out, 256 / stride, stride);
    double2* const swap = in;
    in = out, out = swap;
  }
  for (int k = threadIdx.x; k < p.bins; k += blockDim.x) {
    const double2 a = in[k], b = in[(1024 - k) % 1024];
    out[k] = {exact_magnitude(p, a.x + b.x, a.y - b.y), exact_magnitude(p, a.y + b.y, b.x - a.x)};
  }
  __syncthreads();
  const int rows = min(2, min(frames, p.out_frames) - frame);
  for (int i = threadIdx.x; i < rows * p.n_mels; i += blockDim.x) {
    const int which = i / p.n_mels, mel = i % p.n_mels;
    store(p, clip, frame + which, mel, exact_value(p, mel, which == 0 ? &out->x : &out->y, 2));
  }
  __syncthreads();
}

// Programmatic dependent launch: tables are copied while the previous kernel still runs.
__device__ inline void let_next_launch_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
__device__ inline void wait_for_earlier_launches() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

template <int rows, typename Quads>
__global__ void __launch_bounds__(32 * warps_per_block, 1)
    mel_1024(const __grid_constant__ MelParams p, const __grid_constant__ FilterRounds filters) {
  extern __shared__ float4 shared_memory[];
  Shared1024& shared = *reinterpret_cast<Shared1024*>(shared_memory);
  let_next_launch_begin();
  float4* weights = reinterpret_cast<float4*>(&shared + 1);
  for (int i = threadIdx.x; i < 512; i += blockDim.x) {
    const float2 a = p.twiddles[(i % 32) * (i / 32 * 2) % 1024], b = p.twiddles[(i % 32) * (i / 32 * 2 + 1) % 1024];
    shared.twiddles[i / 32][i % 32] = make_float4(a.x, a.y, b.x, b.y);
    shared.window[i / 32][i % 32] = p.window[i] * (0.5F / sample_steps);
  }
  for (int i = threadIdx.x; i < filters.weights; i += blockDim.x) weights[i] = filters.table[i];
  for (int i = threadIdx.x; i < 32 * Quads::rounds; i += blockDim.x) shared.lanes[i / 32][i % 32] = filters.lanes[i];
  wait_for_earlier_launches();
  for (int i = threadIdx.x; i < p.count; i += blockDim.x) {
    const Source source = source_of(p, i);
    const int frames = frames_of(p, source.length);
    shared.clips[i] = source.pcm != nullptr ? ClipLine{source.pcm, source.length, frames}
                                            : ClipLine{source.decoded, source.length, ~frames};
  }
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float2* exchange = shared.exchange[warp];
  __syncthreads();

  // Each block processes a contiguous range of pairs, interleaved over warps. Pairs that need double are deferred until
  // each warp has done 32.
  const unsigned pairs = static_cast<unsigned>(p.out_frames + 1) / 2, total = pairs * static_cast<unsigned>(p.count);
  const unsigned share = total / gridDim.x, rest = total % gridDim.x;
  const unsigned begin = blockIdx.x * share + min(blockIdx.x, rest), end = begin + share + (blockIdx.x < rest ? 1 : 0);
  for (unsigned round = begin; round < end; round += 32 * warps_per_block) {
    unsigned needs_double_bits = 0, item = round + warp;
    for (unsigned bit = 1; bit != 0 && item < end; bit *= 2, item += warps_per_block) {
      const int clip = static_cast<int>(item / pairs), frame = 2 * static_cast<int>(item % pairs);
      const ClipLine line = shared.clips[clip];
      if (frame >= line.frame_count()) {
        for (int f = frame; f < min(frame + 2, p.out_frames); ++f) {
          for (int mel = lane; mel < p.n_mels; mel += 32) store(p, clip, f, mel, p.padding);
        }
        continue;
      }
      float x[40], re[32], im[32];
      load_pair(p, line, gain_of(p, clip), 256 * frame + p.first_sample, lane, x);
      const unsigned next = min(item + warps_per_block, end - 1);
      prefetch_pair(shared.clips[next / pairs], 512 * static_cast<int>(next % pairs) + p.first_sample, lane);
      // The maximum over lanes is a sufficient bound.
      float energy = 0.0F;
#pragma unroll
      for (int i = 0; i < 40; ++i) energy = fmaf(x[i], x[i], energy);
      transform_1024(x, shared, exchange, lane, re, im);
      magnitudes<rows, Quads>(p, re, im, exchange, lane);
      energy = 16.0F * __uint_as_float(__reduce_max_sync(0xFFFFFFFF, __float_as_uint(energy)));
      __syncwarp();
      // Parseval: half of 32 such lanes, since a Hann window keeps 3/8 of the energy of a stationary signal.
      const float spectrum_rms = fast_root(energy) * (1.0F / sample_steps);
      const int64_t row = (static_cast<int64_t>(clip) * p.out_frames + frame) * p.n_mels;
      if (filter_pair<Quads>(p, filters, shared.lanes, weights, exchange, spectrum_rms, row, frame + 1 < p.out_frames,
                             frame + 1 < line.frame_count(), lane)) {
        needs_double_bits |= bit;
      }
      __syncwarp();
    }
    shared.needs_double_bits[warp] = needs_double_bits;
    __syncthreads();
    for (int w = 0; w < warps_per_block; ++w) {
      for (unsigned bits = shared.needs_double_bits[w]; bits != 0; bits &= bits - 1) {
        const unsigned again = round + w + warps_per_block * (__ffs(static_cast<int>(bits)) - 1);
        const int clip = static_cast<int>(again / pairs), frame = 2 * static_cast<int>(again % pairs);
        const ClipLine& line = shared.clips[clip];
        exact_pair(p, line.source(gain_of(p, clip)), clip, frame, line.frame_count(),
                   reinterpret_cast<double2*>(shared.exchange));
      }
    }
    __syncthreads();
  }
}

}  // namespace myxtts::gpu
