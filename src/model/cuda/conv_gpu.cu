// A thread owns eight adjacent channels, so that every load is 16 bytes; neighbours come from the L1 cache.
#include "model/conv.h"
#include "model/cuda/bfloat16x8.cuh"

#include <algorithm>

namespace myxtts {
namespace {

constexpr int max_taps = static_cast<int>(max_depthwise_kernel);

unsigned blocks_for(int64_t threads) { return static_cast<unsigned>((threads + block_width - 1) / block_width); }

__global__ void __launch_bounds__(block_width) unfold(Unfold<BFloat16> p) {
  const ConvShape& s = p.shape;
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * block_width + threadIdx.x, groups = s.width / pack;
  const int64_t tap = thread / groups % s.kernel, position = thread / (groups * s.kernel);
  if (position >= s.rows * s.positions) return;
  const int64_t row = position / s.positions, reached = position % s.positions + tap - s.kernel / 2;
  const int64_t c = thread % groups * pack;
  uint4 bits = {};
  if (reached >= 0 && reached < s.lengths[row]) bits = load_bits(p.x + (row * s.positions + reached) * s.width + c);
  *reinterpret_cast<uint4*>(p.unfolded + thread * pack) = bits;
}

__global__ void __launch_bounds__(block_width) unfold_backward(UnfoldBackward<BFloat16> p) {
  const ConvShape& s = p.shape;
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * block_width + threadIdx.x, groups = s.width / pack;
  const int64_t position = thread / groups;
  if (position >= s.rows * s.positions) return;
  const int64_t row = position / s.positions, at = position % s.positions, c = thread % groups * pack;
  Vec8 sum = {};
  if (at < s.lengths[row]) {
    for (int64_t tap = 0; tap < s.kernel; ++tap) {
      const int64_t from = at - tap + s.kernel / 2;
      if (from < 0 || from >= s.positions) continue;
      const Vec8 part = load(p.d_unfolded + ((row * s.positions + from) * s.kernel + tap) * s.width + c);
#pragma unroll
      for (int k = 0; k < pack; ++k) sum.v[k] += part.v[k];
    }
  }
  store(p.d_x + thread * pack, sum);
}

// Adds the taps' products to a value. Direction 1 convolves forward, -1 backward.
template <int Direction>
__device__ void add_taps(const ConvShape& s, int64_t row, int64_t at, int64_t c, int64_t end, const BFloat16* from,
                         const BFloat16* weight, Vec8& value) {
  for (int64_t tap = 0; tap < s.kernel; ++tap) {
    const int64_t reached = at + Direction * (tap - s.kernel / 2);
    if (reached < 0 || reached >= end) continue;
    const Vec8 w = load(weight + tap * s.width + c), x = load(from + (row * s.positions + reached) * s.width + c);
#pragma unroll
    for (int k = 0; k < pack; ++k) value.v[k] += w.v[k] * x.v[k];
  }
}

__global__ void __launch_bounds__(block_width) depthwise(Depthwise<BFloat16> p) {
  const ConvShape& s = p.shape;
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * block_width + threadIdx.x, groups = s.width / pack;
  const int64_t position = thread / groups;
  if (position >= s.rows * s.positions) return;
  const int64_t row = position / s.positions, at = position % s.positions, c = thread % groups * pack;
  Vec8 y = load(p.x + thread * pack);
  add_taps<1>(s, row, at, c, s.lengths[row], p.x, p.weight, y);
  store(p.y + thread * pack, y);
}

__global__ void __launch_bounds__(block_width) depthwise_backward(DepthwiseBackward<BFloat16> p) {
  const ConvShape& s = p.shape;
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * block_width + threadIdx.x, groups = s.width / pack;
  const int64_t position = thread / groups;
  if (position >= s.rows * s.positions) return;
  const int64_t row = position / s.positions, at = position % s.positions, c = thread % groups * pack;
  Vec8 d_x = load(p.d_y + thread * pack);
  if (at < s.lengths[row]) add_taps<-1>(s, row, at, c, s.positions, p.d_y, p.weight, d_x);
  store(p.d_x + thread * pack, d_x);
}

// Gradient of the weight: a block sums a chunk of a row's positions. Threads that own the same channels take turns at
// positions; their sums meet in shared memory in a fixed order.
__global__ void __launch_bounds__(block_width) depthwise_weight(DepthwiseBackward<BFloat16> p) {
  extern __shared__ float sums[];  // [kernel, width]
  const ConvShape& s = p.shape;
  const int groups = static_cast<int>(s.width) / pack, turns = block_width / groups;
  const int turn = static_cast<int>(threadIdx.x) / groups, c = static_cast<int>(threadIdx.x) % groups * pack;
  const int64_t row = blockIdx.y, each = (s.positions + p.chunks - 1) / p.chunks;
  const int64_t first = blockIdx.x * each, end = min(first + each, s.positions), length = s.lengths[row];
  Vec8 own[max_taps] = {};
  if (turn < turns) {
    for (int64_t at = first + turn; at < end; at += turns) {
      const Vec8 d_y = load(p.d_y + (row * s.positions + at) * s.width + c);
#pragma unroll
      for (int tap = 0; tap < max_taps; ++tap) {
        const int64_t reached = at + tap - s.kernel / 2;
        if (tap >= s.kernel || reached < 0 || reached >= length) continue;
        const Vec8 x = load(p.x + (row * s.positions + reached) * s.width + c);
#pragma unroll
        for (int k = 0; k < pack; ++k) own[tap].v[k] += d_y.v[k] * x.v[k];
      }
    }
  }
  for (int now = 0; now < turns; ++now) {
    if (turn == now) {
#pragma unroll
      for (int tap = 0; tap < max_taps; ++tap) {
        if (tap >= s.kernel) continue;
        float* const to = sums + tap * s.width + c;
#pragma unroll
        for (int k = 0; k < pack; ++k) to[k] = (now == 0 ? 0 : to[k]) + own[tap].v[k];
      }
    }
    __syncthreads();
  }
  float* const parts = p.parts + (row * p.chunks + blockIdx.x) * s.kernel * s.width;
  for (int64_t i = threadIdx.x; i < s.kernel * s.width; i += block_width) parts[i] = sums[i];
}

}  // namespace

int64_t depthwise_chunks(int64_t rows, int64_t positions) {
  constexpr int64_t target_blocks = 512, min_positions = 16;
  return std::clamp<int64_t>(target_blocks / rows, 1, (positions + min_positions - 1) / min_positions);
}

void unfold_on_gpu(const Unfold<BFloat16>& p, StreamHandle stream) {
  const ConvShape& s = p.shape;
  unfold<<<blocks_for(s.rows * s.positions * s.kernel * s.width / pack), block_width, 0, stream>>>(p);
}

void unfold_backward_on_gpu(const UnfoldBackward<BFloat16>& p, StreamHandle stream) {
  unfold_backward<<<blocks_for(p.shape.rows * p.shape.positions * p.shape.width / pack), block_width, 0, stream>>>(p);
}

void depthwise_on_gpu(const Depthwise<BFloat16>& p, StreamHandle stream) {
  depthwise<<<blocks_for(p.shape.rows * p.shape.positions * p.shape.width / pack), block_width, 0, stream>>>(p);
}

void depthwise_backward_on_gpu(const DepthwiseBackward<BFloat16>& p, StreamHandle stream) {
  const ConvShape& s = p.shape;
  depthwise_backward<<<blocks_for(s.rows * s.positions * s.width / pack), block_width, 0, stream>>>(p);
  const dim3 grid(static_cast<unsigned>(p.chunks), static_cast<unsigned>(s.rows));
  depthwise_weight<<<grid, block_width, static_cast<size_t>(s.kernel * s.width) * sizeof(float), stream>>>(p);
}

}  // namespace myxtts
