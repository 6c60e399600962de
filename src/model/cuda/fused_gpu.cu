// A warp holds a whole vector of `width` values in registers, eight per lane and load, so that reductions are shuffles
// and each value is read once.
#include "model/cuda/bfloat16x8.cuh"
#include "model/fused.h"
#include "model/size.h"

#include <algorithm>
#include <type_traits>

namespace myxtts {
namespace {

constexpr int half_head = head_width / 2;
constexpr float rms_eps = 1e-6F;

// First column of load `i` of this lane; may exceed the width.
__device__ int column(int i) { return (i * warp_width + static_cast<int>(threadIdx.x) % warp_width) * pack; }

// Multipliers of the eight channels from `c` on.
__device__ Vec8 draw(const Dropout& dropout, int64_t row, int64_t position, int c) {
  Vec8 kept;
  draw_dropout(dropout, row, position, c / dropout_group, kept.v);
  return kept;
}

__global__ void __launch_bounds__(block_width) dropout_mask(DropoutMask p) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * block_width + threadIdx.x, groups = p.width / pack;
  const int64_t position = thread / groups;
  if (position >= p.rows * p.positions) return;
  const Vec8 kept =
      draw(p.dropout, position / p.positions, position % p.positions, static_cast<int>(thread % groups) * pack);
#pragma unroll
  for (int k = 0; k < pack; ++k) p.multipliers[thread * pack + k] = kept.v[k];
}

template <int Loads>
__global__ void __launch_bounds__(block_width) add_norm(AddNorm<BFloat16> p) {
  const int64_t position = static_cast<int64_t>(blockIdx.x) * warps + threadIdx.x / warp_width;
  if (position >= p.rows * p.positions) return;
  const int64_t row = position / p.positions;
  const int width = static_cast<int>(p.width);
  Vec8 sum[Loads];
  float squares = 0;
#pragma unroll
  for (int i = 0; i < Loads; ++i) {
    const int c = column(i);
    if (c >= width) continue;
    sum[i] = load(p.x + position * width + c);
    if (p.branch != nullptr) {
      const Vec8 branch = load(p.branch + position * width + c);
      Vec8 gate, kept;
      if (p.gate.values != nullptr) gate = load(p.gate.values + row * p.gate.stride + c);
      if (p.dropout.key != nullptr) kept = draw(p.dropout, row, position % p.positions, c);
#pragma unroll
      for (int k = 0; k < pack; ++k) {
        const float added = p.dropout.key != nullptr ? branch.v[k] * kept.v[k] : branch.v[k];
        sum[i].v[k] = rounded(sum[i].v[k] + (p.gate.values != nullptr ? gate.v[k] : 1) * added);
      }
      store(p.sum + position * width + c, sum[i]);
    }
#pragma unroll
    for (int k = 0; k < pack; ++k) squares += sum[i].v[k] * sum[i].v[k];
  }
  const float inverse_rms = rsqrtf(warp_sum(squares) / static_cast<float>(width) + rms_eps);
  if (threadIdx.x % warp_width == 0) p.inverse_rms[position] = inverse_rms;
#pragma unroll
  for (int i = 0; i < Loads; ++i) {
    const int c = column(i);
    if (c >= width) continue;
    const Vec8 scale = load(p.scale.values + row * p.scale.stride + c);
    Vec8 shift = {};
    if (p.shift.values != nullptr) shift = load(p.shift.values + row * p.shift.stride + c);
    Vec8 normed;
#pragma unroll
    for (int k = 0; k < pack; ++k) {
      normed.v[k] = sum[i].v[k] * inverse_rms * (p.scale_base + scale.v[k]) + shift.v[k];
    }
    store(p.normed + position * width + c, normed);
  }
}

// A block reduces a chunk of positions of a row, first in registers, then across warps. All loads of a position are
// issued before the first use, to hide latency.
template <int Loads>
__global__ void __launch_bounds__(block_width, 2) add_norm_backward(AddNormBackward<BFloat16> b) {
  const AddNorm<BFloat16>& p = b.forward;
  const int64_t row = blockIdx.y;
  const int width = static_cast<int>(p.width), warp = static_cast<int>(threadIdx.x) / warp_width;
  const bool gated = p.gate.values != nullptr;
  const bool dropped = p.dropout.key != nullptr && p.branch != nullptr;
  const int64_t each = (p.positions + b.chunks - 1) / b.chunks;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * each, end = min(first + each, p.positions);
  Vec8 sums[3][Loads] = {};  // d_scale, d_shift and d_gate
  for (int64_t i = first + warp; i < end; i += warps) {
    const int64_t position = row * p.positions + i, offset = position * width;
    uint4 sum_bits[Loads] = {}, d_normed_bits[Loads] = {}, d_residual_bits[Loads] = {}, branch_bits[Loads] = {};
#pragma unroll
    for (int l = 0; l < Loads; ++l) {
      const int c = column(l);
      if (c >= width) continue;
      sum_bits[l] = load_bits(p.sum + offset + c);
      d_normed_bits[l] = load_bits(b.d_normed + offset + c);
      if (b.d_sum != nullptr) d_residual_bits[l] = load_bits(b.d_sum + offset + c);
      if (gated) branch_bits[l] = load_bits(p.branch + offset + c);
    }
    const float inverse_rms = p.inverse_rms[position];
    Vec8 unit[Loads], d_unit[Loads];  // the normalised sum
    float mean_dot = 0;
#pragma unroll
    for (int l = 0; l < Loads; ++l) {
      const int c = column(l);
      if (c >= width) continue;
      unit[l] = to_vec8(sum_bits[l]);
      d_unit[l] = to_vec8(d_normed_bits[l]);
      const Vec8 scale = load(p.scale.values + row * p.scale.stride + c);
#pragma unroll
      for (int k = 0; k < pack; ++k) {
        unit[l].v[k] *= inverse_rms;
        sums[0][l].v[k] += d_unit[l].v[k] * unit[l].v[k];
        sums[1][l].v[k] += d_unit[l].v[k];
        d_unit[l].v[k] *= p.scale_base + scale.v[k];
        mean_dot += d_unit[l].v[k] * unit[l].v[k];
      }
    }
    mean_dot = warp_sum(mean_dot) / static_cast<float>(width);
#pragma unroll
    for (int l = 0; l < Loads; ++l) {
      const int c = column(l);
      if (c >= width) continue;
      const Vec8 d_residual = to_vec8(d_residual_bits[l]);
      Vec8 d_x;
#pragma unroll
      for (int k = 0; k < pack; ++k) {
        d_x.v[k] = inverse_rms * (d_unit[l].v[k] - unit[l].v[k] * mean_dot) + d_residual.v[k];
      }
      store(b.d_x + offset + c, d_x);
      if (!gated && !dropped) continue;
      Vec8 gate, kept, d_branch;
      if (gated) gate = load(p.gate.values + row * p.gate.stride + c);
      if (dropped) kept = draw(p.dropout, row, i, c);
      const Vec8 branch = to_vec8(branch_bits[l]);
#pragma unroll
      for (int k = 0; k < pack; ++k) {
        const float d_added = dropped ? d_x.v[k] * kept.v[k] : d_x.v[k];
        sums[2][l].v[k] += d_added * branch.v[k];
        d_branch.v[k] = gated ? d_added * gate.v[k] : d_added;
      }
      store(b.d_branch + offset + c, d_branch);
    }
  }
  __shared__ float warp_partials[warps][Loads * warp_width * pack];
  float* parts = b.parts + (row * b.chunks + blockIdx.x) * 3 * width;
#pragma unroll
  for (int part = 0; part < 3; ++part) {
#pragma unroll
    for (int l = 0; l < Loads; ++l) {
#pragma unroll
      for (int k = 0; k < pack; ++k) warp_partials[warp][column(l) + k] = sums[part][l].v[k];
    }
    __syncthreads();
    for (int c = static_cast<int>(threadIdx.x); c < width; c += block_width) {
      float sum = 0;
#pragma unroll
      for (int w = 0; w < warps; ++w) sum += warp_partials[w][c];
      parts[part * width + c] = sum;
    }
    __syncthreads();
  }
}

// A block reduces some columns of one partial sum, four per lane; its warps share the chunks.
constexpr int columns_per_block = 4 * warp_width;

__global__ void __launch_bounds__(block_width) sum_parts(const __grid_constant__ SumParts<BFloat16> p) {
  const auto& norm = p.list[blockIdx.x / p.rows];
  const int64_t row = blockIdx.x % p.rows;
  const auto target = norm.targets[blockIdx.y];
  const bool over_rows = target.stride == 0;
  if (target.to == nullptr || (over_rows && row > 0)) return;
  const int64_t first = static_cast<int64_t>(blockIdx.z) * columns_per_block;
  const int64_t columns = min(p.width - first, static_cast<int64_t>(columns_per_block));  // a multiple of 4
  const int64_t chunks = over_rows ? p.rows * p.chunks : p.chunks;
  const float* from = norm.parts + (row * p.chunks * 3 + blockIdx.y) * p.width + first;
  const int warp = static_cast<int>(threadIdx.x) / warp_width, lane = static_cast<int>(threadIdx.x) % warp_width;
  float4 sums = {};
  if (lane * 4 < columns) {
#pragma unroll 4
    for (int64_t chunk = warp; chunk < chunks; chunk += warps) {
      const float4 part = reinterpret_cast<const float4*>(from + chunk * 3 * p.width)[lane];
      sums.x += part.x, sums.y += part.y, sums.z += part.z, sums.w += part.w;
    }
  }
  __shared__ float4 warp_partials[warps][warp_width];
  warp_partials[warp][lane] = sums;
  __syncthreads();
  const auto c = static_cast<int>(threadIdx.x);
  if (c >= columns) return;
  float sum = 0;
#pragma unroll
  for (int w = 0; w < warps; ++w) sum += reinterpret_cast<const float*>(warp_partials[w])[c];
  BFloat16* to = target.to + row * target.stride + first + c;
  *to = to_bfloat16(over_rows ? to_float(*to) + sum : sum);
}

// Rotates eight values of each half of a head; sign -1 inverts the rotation.
__device__ void rotate_pairs(Vec8& low, Vec8& high, const float* cosines, const float* sines, float sign) {
  const Vec8 cosine = load(cosines), sine = load(sines);
#pragma unroll
  for (int k = 0; k < pack; ++k) {
    const float a = low.v[k], b = high.v[k], s = sign * sine.v[k];
    low.v[k] = a * cosine.v[k] - b * s;
    high.v[k] = b * cosine.v[k] + a * s;
  }
}

__global__ void __launch_bounds__(block_width) fill_rotary_table(int64_t count, float* cosines, float* sines) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * block_width + threadIdx.x;
  if (i >= count) return;
  constexpr float log_base = -9.210340372F / half_head;  // -ln(10000) / (head_width / 2)
  sincosf(static_cast<float>(i / half_head) * expf(static_cast<float>(i % half_head) * log_base), sines + i,
          cosines + i);
}

constexpr int threads_per_head = half_head / pack;

__global__ void __launch_bounds__(block_width) rotary(Rotary<BFloat16> p) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * block_width + threadIdx.x;
  const int64_t heads = 2 * p.heads;  // queries, then keys
  const int64_t position = thread / (heads * threads_per_head);
  if (position >= p.rows * p.positions) return;
  const int64_t head = thread / threads_per_head % heads, c = thread % threads_per_head * pack;
  BFloat16* qkv = p.qkv + (position * 3 * p.heads + head) * head_width + c;
  Vec8 low = load(qkv), high = load(qkv + half_head);
  const int64_t angle = position % p.positions * half_head + c;
  rotate_pairs(low, high, p.cosines + angle, p.sines + angle, 1);
  store(qkv, low);
  store(qkv + half_head, high);
}

__global__ void __launch_bounds__(block_width) rotary_backward(RotaryBackward<BFloat16> b) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * block_width + threadIdx.x;
  const int64_t heads = 3 * b.to.heads;
  const int64_t position = thread / (heads * threads_per_head);
  if (position >= b.to.rows * b.to.positions) return;
  const int64_t head = thread / threads_per_head % heads, c = thread % threads_per_head * pack;
  const int64_t part = head / b.to.heads;
  const BFloat16* from = part == 0 ? b.d_q : part == 1 ? b.d_k : b.d_v;
  from += (position * b.to.heads + head % b.to.heads) * head_width + c;
  Vec8 low = load(from), high = load(from + half_head);
  const int64_t angle = position % b.to.positions * half_head + c;
  if (part < 2) rotate_pairs(low, high, b.to.cosines + angle, b.to.sines + angle, -1);
  BFloat16* to = b.to.qkv + (position * heads + head) * head_width + c;
  store(to, low);
  store(to + half_head, high);
}

__device__ float gelu_derivative(float x) {
  constexpr float root = 0.7978845608F, cubic = 0.044715F;  // sqrt(2 / pi)
  const float inner = root * (x + cubic * x * x * x);
  const float tanh = 1 - __fdividef(2, __expf(2 * inner) + 1);
  return 0.5F * (1 + tanh) + 0.5F * x * (1 - tanh * tanh) * root * (1 + 3 * cubic * x * x);
}

constexpr int gelu_loads = 4;

// Blocks run in reverse order, because the end of the previous product is still in L2.
__global__ void __launch_bounds__(block_width) gelu_backward(GeluBackward p) {
  const int64_t block = gridDim.x - 1 - blockIdx.x;
  uint4 before[gelu_loads] = {}, gradient[gelu_loads] = {};
  const auto offset = [&](int i) { return ((block * gelu_loads + i) * block_width + threadIdx.x) * pack; };
#pragma unroll
  for (int i = 0; i < gelu_loads; ++i) {
    if (offset(i) >= p.count) continue;
    gradient[i] = load_bits(p.gradient + offset(i));
    before[i] = __ldcs(reinterpret_cast<const uint4*>(p.before + offset(i)));
  }
#pragma unroll
  for (int i = 0; i < gelu_loads; ++i) {
    if (offset(i) >= p.count) continue;
    const Vec8 x = to_vec8(before[i]);
    Vec8 product = to_vec8(gradient[i]);
#pragma unroll
    for (int k = 0; k < pack; ++k) product.v[k] *= gelu_derivative(x.v[k]);
    store(p.gradient + offset(i), product);
  }
}

unsigned blocks_for(int64_t threads) { return static_cast<unsigned>((threads + block_width - 1) / block_width); }

// Calls `launch` with the number of loads per lane for this width, at most max_fused_width.
template <typename Launch>
void with_loads(int64_t width, const Launch& launch) {
  switch ((width + warp_width * pack - 1) / (warp_width * pack)) {
    case 1:
      return launch(std::integral_constant<int, 1>());
    case 2:
      return launch(std::integral_constant<int, 2>());
    case 3:
      return launch(std::integral_constant<int, 3>());
    default:
      return launch(std::integral_constant<int, 4>());
  }
}

}  // namespace

int64_t add_norm_chunks(int64_t rows, int64_t positions) {
  constexpr int64_t target_blocks = 256;  // blocks: about two per SM of a large GPU, in one wave
  return std::clamp<int64_t>(target_blocks / rows, 1, (positions + warps - 1) / warps);
}

void dropout_mask_on_gpu(const DropoutMask& p, StreamHandle stream) {
  dropout_mask<<<blocks_for(p.rows * p.positions * p.width / pack), block_width, 0, stream>>>(p);
}

void add_norm_on_gpu(const AddNorm<BFloat16>& p, StreamHandle stream) {
  with_loads(p.width, [&](auto loads) {
    add_norm<decltype(loads)::value><<<blocks_for(p.rows * p.positions * warp_width), block_width, 0, stream>>>(p);
  });
}

void add_norm_backward_on_gpu(const AddNormBackward<BFloat16>& b, StreamHandle stream) {
  const dim3 grid(static_cast<unsigned>(b.chunks), static_cast<unsigned>(b.forward.rows));
  with_loads(b.forward.width,
             [&](auto loads) { add_norm_backward<decltype(loads)::value><<<grid, block_width, 0, stream>>>(b); });
}

void sum_parts_on_gpu(const SumParts<BFloat16>& p, StreamHandle stream) {
  const dim3 grid(static_cast<unsigned>(p.rows * p.norms), 3,
                  static_cast<unsigned>((p.width + columns_per_block - 1) / columns_per_block));
  sum_parts<<<grid, block_width, 0, stream>>>(p);
}

void fill_rotary_table_on_gpu(int64_t positions, float* cosines_and_sines, StreamHandle stream) {
  const int64_t count = positions * half_head;
  fill_rotary_table<<<blocks_for(count), block_width, 0, stream>>>(count, cosines_and_sines, cosines_and_sines + count);
}

void rotary_on_gpu(const Rotary<BFloat16>& p, StreamHandle stream) {
  rotary<<<blocks_for(p.rows * p.positions * 2 * p.heads * threads_per_head), block_width, 0, stream>>>(p);
}

void rotary_backward_on_gpu(const RotaryBackward<BFloat16>& b, StreamHandle stream) {
  const int64_t threads = b.to.rows * b.to.positions * 3 * b.to.heads * threads_per_head;
  rotary_backward<<<blocks_for(threads), block_width, 0, stream>>>(b);
}

void gelu_backward_on_gpu(const GeluBackward& p, StreamHandle stream) {
  constexpr int64_t each = gelu_loads * block_width * pack;
  gelu_backward<<<static_cast<unsigned>((p.count + each - 1) / each), block_width, 0, stream>>>(p);
}

}  // namespace myxtts
