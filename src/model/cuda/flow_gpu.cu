// Kernels of the flow: its input with the prior's squared error, and the squared error of its output.
#include "model/cuda/bfloat16x8.cuh"
#include "model/fused.h"

#include <algorithm>

namespace myxtts {
namespace {

// Calls `value(frame, mel_bin)` for the chunk of frames of this block.
template <typename Value>
__device__ void for_each_in_chunk(int64_t frames, int64_t chunks, int64_t n_mels, const Value& value) {
  const int64_t each = (frames + chunks - 1) / chunks;
  const int64_t first = blockIdx.x * each, end = min(first + each, frames);
  for (int64_t i = first * n_mels + threadIdx.x; i < end * n_mels; i += block_width) value(i / n_mels, i % n_mels);
}

__global__ void __launch_bounds__(block_width) flow_input(FlowInput<BFloat16> p) {
  float squares = 0;
  for_each_in_chunk(p.rows * p.frames, p.chunks, p.n_mels, [&](int64_t frame, int64_t m) {
    const int64_t row = frame / p.frames;
    const int32_t token = p.token_of_frame[frame];
    const float mel = p.mel[frame * p.n_mels + m], time = p.time[row];
    const float mu = token < 0 ? 0 : p.mu[(row * p.tokens + token) * p.n_mels + m];
    BFloat16* input = p.input + frame * 2 * p.n_mels + m;
    input[0] = to_bfloat16((1 - (1 - p.sigma_min) * time) * p.noise[frame * p.n_mels + m] + time * mel);
    input[p.n_mels] = to_bfloat16(mu);
    if (token >= 0) squares += (mel - mu) * (mel - mu);
  });
  squares = block_sum(squares);
  if (threadIdx.x == 0) p.squares[blockIdx.x] = squares;
}

// First frame of a token, by a 32-way search of one warp: tokens are sorted, and padding is -1.
__device__ int64_t first_frame(const int32_t* token_of_frame, int64_t frames, int32_t token) {
  const int lane = static_cast<int>(threadIdx.x) % warp_width;
  int64_t first = 0, left = frames;  // the result is in [first, first + left]
  while (left > 0) {
    const int64_t step = (left + warp_width - 1) / warp_width, offset = first + lane * step;
    bool before = false;
    if (offset < first + left) {
      const int32_t there = token_of_frame[offset];
      before = there >= 0 && there < token;
    }
    const int64_t lanes_below = __popc(__ballot_sync(0xFFFFFFFFU, before));
    if (lanes_below == 0) break;
    const int64_t next = first + (lanes_below - 1) * step + 1;
    left = min(step - 1, first + left - next);
    first = next;
  }
  return first;
}

// One block per token: its warps share the frames of the token, and each lane holds some mel bins.
constexpr int values_per_lane = 4, frames_at_once = 4;

__global__ void __launch_bounds__(block_width) flow_input_backward(FlowInputBackward<BFloat16> b) {
  const FlowInput<BFloat16>& p = b.forward;
  const int64_t row = blockIdx.y;
  const auto token = static_cast<int32_t>(blockIdx.x);
  const int32_t* tokens = p.token_of_frame + row * p.frames;
  const int64_t first = row * p.frames + first_frame(tokens, p.frames, token);
  const int64_t end = row * p.frames + first_frame(tokens, p.frames, token + 1);
  const int lane = static_cast<int>(threadIdx.x) % warp_width, warp = static_cast<int>(threadIdx.x) / warp_width;
  const float* mu = p.mu + (row * p.tokens + token) * p.n_mels;
  float* d_mu = b.d_mu + (row * p.tokens + token) * p.n_mels;
  const float d_squares = *b.d_squares;
  __shared__ float warp_partials[warps][values_per_lane * warp_width];
  for (int64_t begin = 0; begin < p.n_mels; begin += values_per_lane * warp_width) {
    float sums[values_per_lane] = {}, means[values_per_lane];
    int64_t values[values_per_lane];  // clamped to the last, so that loads need no branch
#pragma unroll
    for (int k = 0; k < values_per_lane; ++k) {
      values[k] = min(begin + k * warp_width + lane, p.n_mels - 1);
      means[k] = mu[values[k]];
    }
    for (int64_t frame = first + warp; frame < end; frame += frames_at_once * warps) {
      float d_input[frames_at_once][values_per_lane], mel[frames_at_once][values_per_lane];
#pragma unroll
      for (int i = 0; i < frames_at_once; ++i) {
        const int64_t from = min(frame + i * warps, end - 1) * p.n_mels;
#pragma unroll
        for (int k = 0; k < values_per_lane; ++k) {
          d_input[i][k] = to_float(b.d_input[2 * from + p.n_mels + values[k]]);
          mel[i][k] = p.mel[from + values[k]];
        }
      }
#pragma unroll
      for (int i = 0; i < frames_at_once; ++i) {
        const bool valid = frame + i * warps < end;
#pragma unroll
        for (int k = 0; k < values_per_lane; ++k) {
          sums[k] += valid ? d_input[i][k] + d_squares * 2 * (means[k] - mel[i][k]) : 0;
        }
      }
    }
#pragma unroll
    for (int k = 0; k < values_per_lane; ++k) warp_partials[warp][k * warp_width + lane] = sums[k];
    __syncthreads();
    const int64_t m = begin + threadIdx.x;
    if (threadIdx.x < values_per_lane * warp_width && m < p.n_mels) {
      float sum = 0;
#pragma unroll
      for (int w = 0; w < warps; ++w) sum += warp_partials[w][threadIdx.x];
      d_mu[m] = sum;
    }
    __syncthreads();
  }
}

__device__ float flow_error_at(const FlowError<BFloat16>& p, int64_t i) {
  return to_float(p.flow[i]) - (p.mel[i] - (1 - p.sigma_min) * p.noise[i]);
}

__global__ void __launch_bounds__(block_width) flow_error(FlowError<BFloat16> p) {
  float squares = 0;
  for_each_in_chunk(p.rows * p.frames, p.chunks, p.n_mels, [&](int64_t frame, int64_t m) {
    if (p.token_of_frame[frame] < 0) return;
    const float error = flow_error_at(p, frame * p.n_mels + m);
    squares += error * error;
  });
  squares = block_sum(squares);
  if (threadIdx.x == 0) p.squares[blockIdx.x] = squares;
}

__global__ void __launch_bounds__(block_width) flow_error_backward(FlowError<BFloat16> p) {
  const float d_squares = *p.d_squares;
  for_each_in_chunk(p.rows * p.frames, p.chunks, p.n_mels, [&](int64_t frame, int64_t m) {
    const int64_t i = frame * p.n_mels + m;
    p.d_flow[i] = to_bfloat16(p.token_of_frame[frame] < 0 ? 0 : d_squares * 2 * flow_error_at(p, i));
  });
}

}  // namespace

int64_t flow_chunks(int64_t rows, int64_t frames) { return std::clamp<int64_t>(rows * frames / 16, 1, 1024); }

void flow_input_on_gpu(const FlowInput<BFloat16>& p, StreamHandle stream) {
  flow_input<<<static_cast<unsigned>(p.chunks), block_width, 0, stream>>>(p);
}

void flow_input_backward_on_gpu(const FlowInputBackward<BFloat16>& b, StreamHandle stream) {
  const dim3 grid(static_cast<unsigned>(b.forward.tokens), static_cast<unsigned>(b.forward.rows));
  flow_input_backward<<<grid, block_width, 0, stream>>>(b);
}

void flow_error_on_gpu(const FlowError<BFloat16>& p, StreamHandle stream) {
  flow_error<<<static_cast<unsigned>(p.chunks), block_width, 0, stream>>>(p);
}

void flow_error_backward_on_gpu(const FlowError<BFloat16>& p, StreamHandle stream) {
  flow_error_backward<<<static_cast<unsigned>(p.chunks), block_width, 0, stream>>>(p);
}

}  // namespace myxtts
