// A warp holds a whole vector of `width` in registers, eight values a lane and load: sums over it are shuffles, and
// nothing is read twice.
#include "model/cuda/eight.cuh"
#include "model/fused.h"
#include "model/size.h"

#include <algorithm>
#include <type_traits>

namespace myxtts {
namespace {

constexpr int half_head = head_width / 2;
constexpr float least_square = 1e-6F;

// Columns of the number `i` that a lane holds; behind the width there is nothing.
__device__ int column(int i) { return (i * warp_width + static_cast<int>(threadIdx.x) % warp_width) * pack; }

template <int Loads>
__global__ void __launch_bounds__(block_width) add_norm(AddNorm<Brain> p) {
  const int64_t position = static_cast<int64_t>(blockIdx.x) * warps + threadIdx.x / warp_width;
  if (position >= p.rows * p.positions) return;
  const int64_t row = position / p.positions;
  const int width = static_cast<int>(p.width);
  Eight sum[Loads];
  float squares = 0;
#pragma unroll
  for (int i = 0; i < Loads; ++i) {
    const int c = column(i);
    if (c >= width) continue;
    sum[i] = load(p.x + position * width + c);
    if (p.branch != nullptr) {
      const Eight branch = load(p.branch + position * width + c);
      Eight gate;
      if (p.gate.values != nullptr) gate = load(p.gate.values + row * p.gate.stride + c);
#pragma unroll
      for (int k = 0; k < pack; ++k) {
        sum[i].v[k] = rounded(sum[i].v[k] + (p.gate.values != nullptr ? gate.v[k] : 1) * branch.v[k]);
      }
      store(p.sum + position * width + c, sum[i]);
    }
#pragma unroll
    for (int k = 0; k < pack; ++k) squares += sum[i].v[k] * sum[i].v[k];
  }
  const float inverse = rsqrtf(warp_sum(squares) / static_cast<float>(width) + least_square);
  if (threadIdx.x % warp_width == 0) p.inverse[position] = inverse;
#pragma unroll
  for (int i = 0; i < Loads; ++i) {
    const int c = column(i);
    if (c >= width) continue;
    const Eight scale = load(p.scale.values + row * p.scale.stride + c);
    Eight shift = {};
    if (p.shift.values != nullptr) shift = load(p.shift.values + row * p.shift.stride + c);
    Eight normed;
#pragma unroll
    for (int k = 0; k < pack; ++k) {
      normed.v[k] = sum[i].v[k] * inverse * (p.scale_base + scale.v[k]) + shift.v[k];
    }
    store(p.normed + position * width + c, normed);
  }
}

// A block takes a chunk of a row's positions and adds up over them, first in registers, then over its warps. All loads
// of a position are on their way before the first is used.
template <int Loads>
__global__ void __launch_bounds__(block_width, 2) add_norm_backward(AddNormBackward<Brain> b) {
  const AddNorm<Brain>& p = b.forward;
  const int64_t row = blockIdx.y;
  const int width = static_cast<int>(p.width), warp = static_cast<int>(threadIdx.x) / warp_width;
  const bool gated = p.gate.values != nullptr;
  const int64_t each = (p.positions + b.chunks - 1) / b.chunks;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * each, end = min(first + each, p.positions);
  Eight sums[3][Loads] = {};  // of scale, shift and gate
  for (int64_t i = first + warp; i < end; i += warps) {
    const int64_t position = row * p.positions + i, place = position * width;
    uint4 sum_bits[Loads] = {}, d_normed_bits[Loads] = {}, later_bits[Loads] = {}, branch_bits[Loads] = {};
#pragma unroll
    for (int l = 0; l < Loads; ++l) {
      const int c = column(l);
      if (c >= width) continue;
      sum_bits[l] = load_bits(p.sum + place + c);
      d_normed_bits[l] = load_bits(b.d_normed + place + c);
      if (b.d_sum != nullptr) later_bits[l] = load_bits(b.d_sum + place + c);
      if (gated) branch_bits[l] = load_bits(p.branch + place + c);
    }
    const float inverse = p.inverse[position];
    Eight unit[Loads], d_unit[Loads];  // the sum over its root mean square
    float together = 0;
#pragma unroll
    for (int l = 0; l < Loads; ++l) {
      const int c = column(l);
      if (c >= width) continue;
      unit[l] = to_eight(sum_bits[l]);
      d_unit[l] = to_eight(d_normed_bits[l]);
      const Eight scale = load(p.scale.values + row * p.scale.stride + c);
#pragma unroll
      for (int k = 0; k < pack; ++k) {
        unit[l].v[k] *= inverse;
        sums[0][l].v[k] += d_unit[l].v[k] * unit[l].v[k];
        sums[1][l].v[k] += d_unit[l].v[k];
        d_unit[l].v[k] *= p.scale_base + scale.v[k];
        together += d_unit[l].v[k] * unit[l].v[k];
      }
    }
    together = warp_sum(together) / static_cast<float>(width);
#pragma unroll
    for (int l = 0; l < Loads; ++l) {
      const int c = column(l);
      if (c >= width) continue;
      const Eight later = to_eight(later_bits[l]);
      Eight d_x;
#pragma unroll
      for (int k = 0; k < pack; ++k) {
        d_x.v[k] = inverse * (d_unit[l].v[k] - unit[l].v[k] * together) + later.v[k];
      }
      store(b.d_x + place + c, d_x);
      if (!gated) continue;
      const Eight gate = load(p.gate.values + row * p.gate.stride + c), branch = to_eight(branch_bits[l]);
      Eight d_branch;
#pragma unroll
      for (int k = 0; k < pack; ++k) {
        sums[2][l].v[k] += d_x.v[k] * branch.v[k];
        d_branch.v[k] = d_x.v[k] * gate.v[k];
      }
      store(b.d_branch + place + c, d_branch);
    }
  }
  __shared__ float of_warp[warps][Loads * warp_width * pack];
  float* parts = b.parts + (row * b.chunks + blockIdx.x) * 3 * width;
#pragma unroll
  for (int part = 0; part < 3; ++part) {
#pragma unroll
    for (int l = 0; l < Loads; ++l) {
#pragma unroll
      for (int k = 0; k < pack; ++k) of_warp[warp][column(l) + k] = sums[part][l].v[k];
    }
    __syncthreads();
    for (int c = static_cast<int>(threadIdx.x); c < width; c += block_width) {
      float sum = 0;
#pragma unroll
      for (int w = 0; w < warps; ++w) sum += of_warp[w][c];
      parts[part * width + c] = sum;
    }
    __syncthreads();
  }
}

// A block adds up some columns of one part, four a lane; its warps share the chunks.
constexpr int columns_of_sum = 4 * warp_width;

__global__ void __launch_bounds__(block_width) sum_parts(const __grid_constant__ SumParts<Brain> p) {
  const auto& norm = p.list[blockIdx.x / p.rows];
  const int64_t row = blockIdx.x % p.rows;
  const auto target = norm.targets[blockIdx.y];
  const bool over_rows = target.stride == 0;
  if (target.to == nullptr || (over_rows && row > 0)) return;
  const int64_t first = static_cast<int64_t>(blockIdx.z) * columns_of_sum;
  const int64_t columns = min(p.width - first, static_cast<int64_t>(columns_of_sum));  // whole fours
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
  __shared__ float4 of_warp[warps][warp_width];
  of_warp[warp][lane] = sums;
  __syncthreads();
  const auto c = static_cast<int>(threadIdx.x);
  if (c >= columns) return;
  float sum = 0;
#pragma unroll
  for (int w = 0; w < warps; ++w) sum += reinterpret_cast<const float*>(of_warp[w])[c];
  Brain* to = target.to + row * target.stride + first + c;
  *to = to_brain(over_rows ? to_float(*to) + sum : sum);
}

// Eight values of each half of a head, turned forwards or backwards.
__device__ void turn(Eight& low, Eight& high, const float* cosines, const float* sines, float sign) {
  const Eight cosine = load(cosines), sine = load(sines);
#pragma unroll
  for (int k = 0; k < pack; ++k) {
    const float a = low.v[k], b = high.v[k], s = sign * sine.v[k];
    low.v[k] = a * cosine.v[k] - b * s;
    high.v[k] = b * cosine.v[k] + a * s;
  }
}

__global__ void __launch_bounds__(block_width) fill_rotary(int64_t count, float* cosines, float* sines) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * block_width + threadIdx.x;
  if (i >= count) return;
  constexpr float slowdown = -9.210340372F / half_head;  // logarithm of 10,000: the last pair turns about that slowly
  sincosf(static_cast<float>(i / half_head) * expf(static_cast<float>(i % half_head) * slowdown), sines + i,
          cosines + i);
}

constexpr int threads_of_head = half_head / pack;

__global__ void __launch_bounds__(block_width) rotate(Rotation<Brain> p) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * block_width + threadIdx.x;
  const int64_t heads = 2 * p.heads;  // queries, then keys
  const int64_t position = thread / (heads * threads_of_head);
  if (position >= p.rows * p.positions) return;
  const int64_t head = thread / threads_of_head % heads, c = thread % threads_of_head * pack;
  Brain* values = p.values + (position * 3 * p.heads + head) * head_width + c;
  Eight low = load(values), high = load(values + half_head);
  const int64_t angle = position % p.positions * half_head + c;
  turn(low, high, p.cosines + angle, p.sines + angle, 1);
  store(values, low);
  store(values + half_head, high);
}

__global__ void __launch_bounds__(block_width) rotate_back(RotationBackward<Brain> b) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * block_width + threadIdx.x;
  const int64_t heads = 3 * b.to.heads;
  const int64_t position = thread / (heads * threads_of_head);
  if (position >= b.to.rows * b.to.positions) return;
  const int64_t head = thread / threads_of_head % heads, c = thread % threads_of_head * pack;
  const int64_t part = head / b.to.heads;
  const Brain* from = part == 0 ? b.queries : part == 1 ? b.keys : b.values;
  from += (position * b.to.heads + head % b.to.heads) * head_width + c;
  Eight low = load(from), high = load(from + half_head);
  const int64_t angle = position % b.to.positions * half_head + c;
  if (part < 2) turn(low, high, b.to.cosines + angle, b.to.sines + angle, -1);
  Brain* to = b.to.values + (position * heads + head) * head_width + c;
  store(to, low);
  store(to + half_head, high);
}

// Calls `value(frame, mel)` for what is a block's, a chunk of all frames.
template <typename Value>
__device__ void over_chunk(int64_t frames, int64_t chunks, int64_t n_mels, const Value& value) {
  const int64_t each = (frames + chunks - 1) / chunks;
  const int64_t first = blockIdx.x * each, end = min(first + each, frames);
  for (int64_t i = first * n_mels + threadIdx.x; i < end * n_mels; i += block_width) value(i / n_mels, i % n_mels);
}

__global__ void __launch_bounds__(block_width) flow_input(FlowInput<Brain> p) {
  float squares = 0;
  over_chunk(p.rows * p.frames, p.chunks, p.n_mels, [&](int64_t frame, int64_t m) {
    const int64_t row = frame / p.frames;
    const int32_t token = p.token_of_frame[frame];
    const float mel = p.mel[frame * p.n_mels + m], time = p.time[row];
    const float mu = token < 0 ? 0 : p.mu[(row * p.tokens + token) * p.n_mels + m];
    Brain* input = p.input + frame * 2 * p.n_mels + m;
    input[0] = to_brain((1 - (1 - p.sigma) * time) * p.noise[frame * p.n_mels + m] + time * mel);
    input[p.n_mels] = to_brain(mu);
    if (token >= 0) squares += (mel - mu) * (mel - mu);
  });
  squares = block_sum(squares);
  if (threadIdx.x == 0) p.squares[blockIdx.x] = squares;
}

// The first frame of a token: tokens come in order, and behind the end they are -1. A warp looks at as many places as
// it has lanes at once.
__device__ int64_t first_frame(const int32_t* token_of_frame, int64_t frames, int32_t token) {
  const int lane = static_cast<int>(threadIdx.x) % warp_width;
  int64_t first = 0, left = frames;  // it is one of these, or the one behind them
  while (left > 0) {
    const int64_t step = (left + warp_width - 1) / warp_width, place = first + lane * step;
    bool before = false;
    if (place < first + left) {
      const int32_t there = token_of_frame[place];
      before = there >= 0 && there < token;
    }
    const int64_t lanes_before = __popc(__ballot_sync(0xFFFFFFFFU, before));
    if (lanes_before == 0) break;
    const int64_t next = first + (lanes_before - 1) * step + 1;
    left = min(step - 1, first + left - next);
    first = next;
  }
  return first;
}

// One block a token: its warps share the token's frames, however many those are, and a lane has some of their values.
constexpr int values_of_lane = 4, frames_at_once = 4;

__global__ void __launch_bounds__(block_width) flow_input_backward(FlowInputBackward<Brain> b) {
  const FlowInput<Brain>& p = b.forward;
  const int64_t row = blockIdx.y;
  const auto token = static_cast<int32_t>(blockIdx.x);
  const int32_t* tokens = p.token_of_frame + row * p.frames;
  const int64_t first = row * p.frames + first_frame(tokens, p.frames, token);
  const int64_t end = row * p.frames + first_frame(tokens, p.frames, token + 1);
  const int lane = static_cast<int>(threadIdx.x) % warp_width, warp = static_cast<int>(threadIdx.x) / warp_width;
  const float* mu = p.mu + (row * p.tokens + token) * p.n_mels;
  float* d_mu = b.d_mu + (row * p.tokens + token) * p.n_mels;
  const float d_squares = *b.d_squares;
  __shared__ float of_warp[warps][values_of_lane * warp_width];
  for (int64_t begin = 0; begin < p.n_mels; begin += values_of_lane * warp_width) {
    float sums[values_of_lane] = {}, means[values_of_lane];
    int64_t values[values_of_lane];  // behind the last, the last again: loads need no branch, and come together
#pragma unroll
    for (int k = 0; k < values_of_lane; ++k) {
      values[k] = min(begin + k * warp_width + lane, p.n_mels - 1);
      means[k] = mu[values[k]];
    }
    for (int64_t frame = first + warp; frame < end; frame += frames_at_once * warps) {
      float of_input[frames_at_once][values_of_lane], mel[frames_at_once][values_of_lane];
#pragma unroll
      for (int i = 0; i < frames_at_once; ++i) {
        const int64_t from = min(frame + i * warps, end - 1) * p.n_mels;
#pragma unroll
        for (int k = 0; k < values_of_lane; ++k) {
          of_input[i][k] = to_float(b.d_input[2 * from + p.n_mels + values[k]]);
          mel[i][k] = p.mel[from + values[k]];
        }
      }
#pragma unroll
      for (int i = 0; i < frames_at_once; ++i) {
        const bool valid = frame + i * warps < end;
#pragma unroll
        for (int k = 0; k < values_of_lane; ++k) {
          sums[k] += valid ? of_input[i][k] + d_squares * 2 * (means[k] - mel[i][k]) : 0;
        }
      }
    }
#pragma unroll
    for (int k = 0; k < values_of_lane; ++k) of_warp[warp][k * warp_width + lane] = sums[k];
    __syncthreads();
    const int64_t m = begin + threadIdx.x;
    if (threadIdx.x < values_of_lane * warp_width && m < p.n_mels) {
      float sum = 0;
#pragma unroll
      for (int w = 0; w < warps; ++w) sum += of_warp[w][threadIdx.x];
      d_mu[m] = sum;
    }
    __syncthreads();
  }
}

__device__ float gelu_slope(float x) {
  constexpr float root = 0.7978845608F, cubic = 0.044715F;  // sqrt(2 / pi)
  const float inner = root * (x + cubic * x * x * x);
  const float tanh = 1 - __fdividef(2, __expf(2 * inner) + 1);
  return 0.5F * (1 + tanh) + 0.5F * x * (1 - tanh * tanh) * root * (1 + 3 * cubic * x * x);
}

constexpr int gelu_loads = 4;

// Blocks begin at the end: what the product before this wrote last is still in the cache.
__global__ void __launch_bounds__(block_width) gelu_backward(GeluBackward p) {
  const int64_t block = gridDim.x - 1 - blockIdx.x;
  uint4 before[gelu_loads] = {}, gradient[gelu_loads] = {};
  const auto place = [&](int i) { return ((block * gelu_loads + i) * block_width + threadIdx.x) * pack; };
#pragma unroll
  for (int i = 0; i < gelu_loads; ++i) {
    if (place(i) >= p.count) continue;
    gradient[i] = load_bits(p.gradient + place(i));
    before[i] = __ldcs(reinterpret_cast<const uint4*>(p.before + place(i)));
  }
#pragma unroll
  for (int i = 0; i < gelu_loads; ++i) {
    if (place(i) >= p.count) continue;
    const Eight x = to_eight(before[i]);
    Eight made = to_eight(gradient[i]);
#pragma unroll
    for (int k = 0; k < pack; ++k) made.v[k] *= gelu_slope(x.v[k]);
    store(p.gradient + place(i), made);
  }
}

__device__ float error_of(const FlowError<Brain>& p, int64_t i) {
  return to_float(p.flow[i]) - (p.mel[i] - (1 - p.sigma) * p.noise[i]);
}

__global__ void __launch_bounds__(block_width) flow_error(FlowError<Brain> p) {
  float squares = 0;
  over_chunk(p.rows * p.frames, p.chunks, p.n_mels, [&](int64_t frame, int64_t m) {
    if (p.token_of_frame[frame] < 0) return;
    const float error = error_of(p, frame * p.n_mels + m);
    squares += error * error;
  });
  squares = block_sum(squares);
  if (threadIdx.x == 0) p.squares[blockIdx.x] = squares;
}

__global__ void __launch_bounds__(block_width) flow_error_backward(FlowError<Brain> p) {
  const float d_squares = *p.d_squares;
  over_chunk(p.rows * p.frames, p.chunks, p.n_mels, [&](int64_t frame, int64_t m) {
    const int64_t i = frame * p.n_mels + m;
    p.d_flow[i] = to_brain(p.token_of_frame[frame] < 0 ? 0 : d_squares * 2 * error_of(p, i));
  });
}

unsigned blocks_for(int64_t threads) { return static_cast<unsigned>((threads + block_width - 1) / block_width); }

// Calls `launch` with as many loads a lane as the width takes; at most widest_fused.
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
  constexpr int64_t wanted = 256;  // blocks: two for each of a large GPU's multiprocessors, all at once
  return std::clamp<int64_t>(wanted / rows, 1, (positions + warps - 1) / warps);
}

int64_t flow_chunks(int64_t rows, int64_t frames) { return std::clamp<int64_t>(rows * frames / 16, 1, 1024); }

void add_norm_on_gpu(const AddNorm<Brain>& p, StreamHandle stream) {
  with_loads(p.width, [&](auto loads) {
    add_norm<decltype(loads)::value><<<blocks_for(p.rows * p.positions * warp_width), block_width, 0, stream>>>(p);
  });
}

void add_norm_backward_on_gpu(const AddNormBackward<Brain>& b, StreamHandle stream) {
  const dim3 grid(static_cast<unsigned>(b.chunks), static_cast<unsigned>(b.forward.rows));
  with_loads(b.forward.width,
             [&](auto loads) { add_norm_backward<decltype(loads)::value><<<grid, block_width, 0, stream>>>(b); });
}

void sum_parts_on_gpu(const SumParts<Brain>& p, StreamHandle stream) {
  const dim3 grid(static_cast<unsigned>(p.rows * p.norms), 3,
                  static_cast<unsigned>((p.width + columns_of_sum - 1) / columns_of_sum));
  sum_parts<<<grid, block_width, 0, stream>>>(p);
}

void fill_rotary_on_gpu(int64_t positions, float* cosines_and_sines, StreamHandle stream) {
  const int64_t count = positions * half_head;
  fill_rotary<<<blocks_for(count), block_width, 0, stream>>>(count, cosines_and_sines, cosines_and_sines + count);
}

void rotate_on_gpu(const Rotation<Brain>& p, StreamHandle stream) {
  rotate<<<blocks_for(p.rows * p.positions * 2 * p.heads * threads_of_head), block_width, 0, stream>>>(p);
}

void rotate_back_on_gpu(const RotationBackward<Brain>& b, StreamHandle stream) {
  const int64_t threads = b.to.rows * b.to.positions * 3 * b.to.heads * threads_of_head;
  rotate_back<<<blocks_for(threads), block_width, 0, stream>>>(b);
}

void gelu_backward_on_gpu(const GeluBackward& p, StreamHandle stream) {
  constexpr int64_t each = gelu_loads * block_width * pack;
  gelu_backward<<<static_cast<unsigned>((p.count + each - 1) / each), block_width, 0, stream>>>(p);
}

void flow_input_on_gpu(const FlowInput<Brain>& p, StreamHandle stream) {
  flow_input<<<static_cast<unsigned>(p.chunks), block_width, 0, stream>>>(p);
}

void flow_input_backward_on_gpu(const FlowInputBackward<Brain>& b, StreamHandle stream) {
  const dim3 grid(static_cast<unsigned>(b.forward.tokens), static_cast<unsigned>(b.forward.rows));
  flow_input_backward<<<grid, block_width, 0, stream>>>(b);
}

void flow_error_on_gpu(const FlowError<Brain>& p, StreamHandle stream) {
  flow_error<<<static_cast<unsigned>(p.chunks), block_width, 0, stream>>>(p);
}

void flow_error_backward_on_gpu(const FlowError<Brain>& p, StreamHandle stream) {
  flow_error_backward<<<static_cast<unsigned>(p.chunks), block_width, 0, stream>>>(p);
}

}  // namespace myxtts
