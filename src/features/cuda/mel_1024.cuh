// The kernel for transforms of 1024 points with a hop of 256, which nearly every preset has.
//
// A warp takes two neighbouring frames as the real and the imaginary part of one complex transform of 1024 = 32 x 32
// points. Lane j holds samples j, j+32, ...: 32 points in registers. A transform of 32 points in registers, one turn,
// one exchange through shared memory, and again 32 points in registers; bin k = lane + 32 m is then in register m.
// Because the hop is 8 x 32 samples, the second frame's point i is the first frame's point i + 8 of the same lane: 40
// loads serve both. The two spectra come apart by symmetry, so only the bins that a filter uses are finished.
#pragma once

#include "features/cuda/mel_device.cuh"

namespace myxtts::gpu {

constexpr int warps_per_block = 4;
constexpr int row_stride =
    34;  // of the exchange: 16-byte reads of a row and 8-byte writes of a column without conflicts
constexpr int exchange_float2 = 32 * row_stride;

__device__ inline void rotate_45(float& re, float& im) {  // times e^(-i pi/4)
  constexpr float half_root = 0.70710678118654752F;
  const float sum = (re + im) * half_root, difference = (im - re) * half_root;
  re = sum;
  im = difference;
}

// Times e^(-2 pi i k / 32), k known at compile time.
template <int k>
__device__ inline void turn_32(float& re, float& im) {
  constexpr float cosines[32] = {1.0F,
                                 0.98078528040323044F,
                                 0.92387953251128676F,
                                 0.83146961230254524F,
                                 0.70710678118654752F,
                                 0.55557023301960222F,
                                 0.38268343236508977F,
                                 0.19509032201612827F,
                                 0.0F,
                                 -0.19509032201612827F,
                                 -0.38268343236508977F,
                                 -0.55557023301960222F,
                                 -0.70710678118654752F,
                                 -0.83146961230254524F,
                                 -0.92387953251128676F,
                                 -0.98078528040323044F,
                                 -1.0F,
                                 -0.98078528040323044F,
                                 -0.92387953251128676F,
                                 -0.83146961230254524F,
                                 -0.70710678118654752F,
                                 -0.55557023301960222F,
                                 -0.38268343236508977F,
                                 -0.19509032201612827F,
                                 0.0F,
                                 0.19509032201612827F,
                                 0.38268343236508977F,
                                 0.55557023301960222F,
                                 0.70710678118654752F,
                                 0.83146961230254524F,
                                 0.92387953251128676F,
                                 0.98078528040323044F};
  if constexpr (k == 0) {
    return;
  } else if constexpr (k == 4) {
    rotate_45(re, im);
  } else if constexpr (k == 8) {
    const float old = re;
    re = im;
    im = -old;
  } else {
    constexpr float cosine = cosines[k % 32], sine = -cosines[(k + 24) % 32];
    const float old = re;
    re = old * cosine - im * sine;
    im = im * cosine + old * sine;
  }
}

__device__ inline void transform_4(float (&re)[4], float (&im)[4]) {
  const float ar = re[0] + re[2], ai = im[0] + im[2], br = re[0] - re[2], bi = im[0] - im[2];
  const float cr = re[1] + re[3], ci = im[1] + im[3], dr = re[1] - re[3], di = im[1] - im[3];
  re[0] = ar + cr, im[0] = ai + ci;
  re[1] = br + di, im[1] = bi - dr;
  re[2] = ar - cr, im[2] = ai - ci;
  re[3] = br - di, im[3] = bi + dr;
}

__device__ inline void transform_8(float (&re)[8], float (&im)[8]) {
  float er[4] = {re[0], re[2], re[4], re[6]}, ei[4] = {im[0], im[2], im[4], im[6]};
  float fr[4] = {re[1], re[3], re[5], re[7]}, fi[4] = {im[1], im[3], im[5], im[7]};
  transform_4(er, ei);
  transform_4(fr, fi);
  turn_32<4>(fr[1], fi[1]);
  turn_32<8>(fr[2], fi[2]);
  turn_32<8>(fr[3], fi[3]);
  turn_32<4>(fr[3], fi[3]);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    re[i] = er[i] + fr[i], im[i] = ei[i] + fi[i];
    re[i + 4] = er[i] - fr[i], im[i + 4] = ei[i] - fi[i];
  }
}

template <int n2, int k1 = 0>
__device__ inline void turn_column(float (&re)[8], float (&im)[8]) {
  if constexpr (k1 < 8) {
    turn_32<n2 * k1>(re[k1], im[k1]);
    turn_column<n2, k1 + 1>(re, im);
  }
}

// Column n2 of 32 = 8 x 4: points n2, n2 + 4, ...
template <int n2>
__device__ inline void column_32(const float (&re)[32], const float (&im)[32], float (&ar)[4][8], float (&ai)[4][8]) {
#pragma unroll
  for (int n1 = 0; n1 < 8; ++n1) ar[n2][n1] = re[4 * n1 + n2], ai[n2][n1] = im[4 * n1 + n2];
  transform_8(ar[n2], ai[n2]);
  turn_column<n2>(ar[n2], ai[n2]);
}

__device__ inline void transform_32(float (&re)[32], float (&im)[32]) {
  float ar[4][8], ai[4][8];
  column_32<0>(re, im, ar, ai);
  column_32<1>(re, im, ar, ai);
  column_32<2>(re, im, ar, ai);
  column_32<3>(re, im, ar, ai);
#pragma unroll
  for (int k1 = 0; k1 < 8; ++k1) {
    float r[4] = {ar[0][k1], ar[1][k1], ar[2][k1], ar[3][k1]}, i[4] = {ai[0][k1], ai[1][k1], ai[2][k1], ai[3][k1]};
    transform_4(r, i);
#pragma unroll
    for (int k2 = 0; k2 < 4; ++k2) re[k1 + 8 * k2] = r[k2], im[k1 + 8 * k2] = i[k2];
  }
}

// The pair's points, windowed; returns the energy of all samples that either frame sees.
__device__ inline float load_pair(const MelParams& p, const Source& source, int start, const float* window, int lane,
                                  float (&re)[32], float (&im)[32]) {
  float x[40];
  if (start >= 0 && start + 1280 <= source.length) {
    if (source.pcm != nullptr) {
      const int16_t* at = source.pcm + start + lane;
#pragma unroll
      for (int i = 0; i < 40; ++i) x[i] = static_cast<float>(at[32 * i]) * (1.0F / 32768.0F);
    } else {
      const float* at = source.decoded + start + lane;
#pragma unroll
      for (int i = 0; i < 40; ++i) x[i] = at[32 * i];
    }
    if (source.gain != 0.0F) {
#pragma unroll
      for (int i = 0; i < 40; ++i) x[i] = fminf(fmaxf(x[i] * source.gain, -1.0F), 1.0F);
    }
  } else {
#pragma unroll
    for (int i = 0; i < 40; ++i) x[i] = source.padded(start + lane + 32 * i, p.pad_zeros);
  }
  float energy = 0.0F;
#pragma unroll
  for (int i = 0; i < 40; ++i) energy = fmaf(x[i], x[i], energy);
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const float w = window[32 * i + lane];
    re[i] = x[i] * w;
    im[i] = x[i + 8] * w;
  }
  return energy;
}

// From points over time to this lane's bins lane + 32 m.
__device__ inline void transform_1024(float (&re)[32], float (&im)[32], const float2 (&turns)[32], float2* exchange,
                                      int lane) {
  transform_32(re, im);
#pragma unroll
  for (int c = 0; c < 32; ++c) {
    const float turned_re = re[c] * turns[c].x - im[c] * turns[c].y;
    const float turned_im = re[c] * turns[c].y + im[c] * turns[c].x;
    exchange[c * row_stride + lane] = make_float2(turned_re, turned_im);
  }
  __syncwarp();
  const float4* row = reinterpret_cast<const float4*>(exchange + lane * row_stride);
#pragma unroll
  for (int j = 0; j < 16; ++j) {
    const float4 two = row[j];
    re[2 * j] = two.x, im[2 * j] = two.y, re[2 * j + 1] = two.z, im[2 * j + 1] = two.w;
  }
  __syncwarp();
  transform_32(re, im);
}

// The two frames' magnitudes (or powers) of bins below 32 * rows, side by side in shared memory. The window carries the
// factor 1/2 that takes the spectra apart.
template <int rows>
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
    if (!p.power) first = fast_root(first + p.epsilon), second = fast_root(second + p.epsilon);
    out[32 * m + lane] = make_float2(first, second);
  }
}

// Filters and logarithm of both frames. True when either needs the exact version.
__device__ inline bool filter_pair(const MelParams& p, const FilterRounds& filters, const float* weights,
                                   const float2* magnitude, float spectrum_rms, int clip, int frame, int frames,
                                   int lane) {
  bool rough = false;
  for (int round = 0; round < filters.count; ++round) {
    const FilterRound& r = filters.rounds[round];
    const float2* at = magnitude + filters.first_bin[32 * round + lane];
    const float* weight = weights + r.weights_at + lane;
    float first = 0.0F, second = 0.0F;
#pragma unroll 4
    for (int tap = 0; tap < r.taps; ++tap) {
      const float2 both = at[tap];
      const float w = weight[32 * tap];
      first = fmaf(w, both.x, first), second = fmaf(w, both.y, second);
    }
    for (int step = 1; step < r.lanes_each; step *= 2) {
      first += __shfl_xor_sync(0xFFFFFFFF, first, step);
      second += __shfl_xor_sync(0xFFFFFFFF, second, step);
    }
    const int mel = filters.mel[32 * round + lane];
    if (mel < 0) continue;
    if (p.check_rounding) rough |= too_rough(p, first, spectrum_rms, mel) || too_rough(p, second, spectrum_rms, mel);
    if (lane % r.lanes_each != 0) continue;
    store(p, clip, frame, mel, finish(p, first));
    if (frame + 1 < p.out_frames) store(p, clip, frame + 1, mel, frame + 1 < frames ? finish(p, second) : p.padding);
  }
  return __any_sync(0xFFFFFFFF, rough);
}

template <int rows>
__global__ void __launch_bounds__(32 * warps_per_block, 3)
    mel_1024(const __grid_constant__ MelParams p, const __grid_constant__ FilterRounds filters) {
  extern __shared__ float4 shared[];
  float2* exchange = reinterpret_cast<float2*>(shared) + (threadIdx.x / 32) * exchange_float2;
  float* window = reinterpret_cast<float*>(reinterpret_cast<float2*>(shared) + warps_per_block * exchange_float2);
  float* weights = window + 1024;
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) window[i] = 0.5F * p.window[i];
  for (int i = threadIdx.x; i < filters.weights; i += blockDim.x) weights[i] = filters.table[i];
  const int lane = threadIdx.x % 32;
  float2 turns[32];
#pragma unroll
  for (int c = 0; c < 32; ++c) turns[c] = p.turns[(lane * c) % 1024];
  __syncthreads();

  const int pairs = (p.out_frames + 1) / 2, total = pairs * p.count;
  for (int item = blockIdx.x * warps_per_block + threadIdx.x / 32; item < total; item += gridDim.x * warps_per_block) {
    const int clip = item / pairs, frame = 2 * (item % pairs);
    const Source source = source_of(p, clip);
    const int frames = frames_of(p, source.length);
    if (frame >= frames) {
      for (int f = frame; f < min(frame + 2, p.out_frames); ++f) {
        for (int mel = lane; mel < p.n_mels; mel += 32) store(p, clip, f, mel, p.padding);
      }
      continue;
    }
    float re[32], im[32];
    float energy = load_pair(p, source, frame * 256 + p.first_sample, window, lane, re, im);
#pragma unroll
    for (int step = 1; step < 32; step *= 2) energy += __shfl_xor_sync(0xFFFFFFFF, energy, step);
    transform_1024(re, im, turns, exchange, lane);
    magnitudes<rows>(p, re, im, exchange, lane);
    __syncwarp();
    // By Parseval; a Hann window keeps 3/8 of the energy of a steady sound, more of a burst in its middle.
    const float spectrum_rms = fast_root(0.5F * energy);
    const bool rough = filter_pair(p, filters, weights, exchange, spectrum_rms, clip, frame, frames, lane);
    __syncwarp();
    if (rough) {
      for (int f = frame; f < min(frame + 2, min(frames, p.out_frames)); ++f) {
        exact_frame<WarpGroup>(p, source, clip, f, reinterpret_cast<double*>(exchange));
      }
    }
  }
}

}  // namespace myxtts::gpu
