// Monotonic alignment search, one block per row. Two kernels: scores of a frame in the registers of one warp for texts
// that fit, otherwise in shared memory.
#include "model/alignment.h"

#include <type_traits>
#include <utility>

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

namespace myxtts {
namespace {

constexpr int warp_width = 32;
constexpr float unreachable = -1e32F;

// Called by all threads of a block.
__device__ void fill_from(int32_t* values, int first, int64_t end, int32_t value) {
  for (int64_t i = first + static_cast<int>(threadIdx.x); i < end; i += blockDim.x) values[i] = value;
}

// Warp-specialised: one warp runs the dynamic program, the others prefetch scores. A lane holds `Each` adjacent tokens,
// so that its left neighbour is a register or one shuffle. Backtracking uses shared memory.
constexpr int stage_frames = 16;
constexpr int stages = 3;  // in shared memory: one in use, the others in flight
constexpr int producer_warps = 3;

template <int Each>
using Decisions = std::conditional_t<Each <= 8, uint8_t, std::conditional_t<Each <= 16, uint16_t, uint32_t>>;

__host__ __device__ constexpr int64_t stage_count(int64_t frames) { return (frames + stage_frames - 1) / stage_frames; }

template <int Each>
size_t shared_bytes_per_row(int64_t frames) {
  const auto decisions = static_cast<size_t>(stage_count(frames) * stage_frames) * sizeof(Decisions<Each>);
  return (stages * stage_frames * Each * sizeof(float) + decisions) * warp_width;
}

template <int Each>
__global__ void __launch_bounds__((1 + producer_warps) * warp_width) align_warp(AlignmentProblem problem) {
  extern __shared__ float staged[];  // [stages][stage_frames][Each][warp_width]
  auto* const decisions =
      reinterpret_cast<Decisions<Each>*>(staged + stages * stage_frames * Each * warp_width);  // [frames][warp_width]
  const int row = static_cast<int>(blockIdx.x);
  const int lane = static_cast<int>(threadIdx.x) % warp_width, warp = static_cast<int>(threadIdx.x) / warp_width;
  const int tokens = problem.text_lengths[row], frames = problem.mel_lengths[row];
  const int columns = static_cast<int>(problem.tokens);
  const float* const scores = problem.scores + row * problem.frames * problem.tokens;
  int32_t* const result = problem.token_of_frame + row * problem.frames;
  int32_t* const durations = problem.durations + row * problem.tokens;
  const bool possible = tokens > 0 && frames >= tokens;
  fill_from(result, possible ? frames : 0, problem.frames, -1);
  fill_from(durations, 0, problem.tokens, 0);
  if (!possible) return;

  const auto token_of = [&](int k) { return k * warp_width + lane; };
  int slot[Each];  // slot of each token within a staged frame
#pragma unroll
  for (int k = 0; k < Each; ++k) slot[k] = token_of(k) % Each * warp_width + token_of(k) / Each;
  const auto fetch = [&](int stage) {
    float* const to = staged + stage % stages * stage_frames * Each * warp_width;
    const float* const from = scores + static_cast<int64_t>(stage) * stage_frames * columns;
    const int count = min(stage_frames, frames - stage * stage_frames);
    for (int i = warp - 1; i < count; i += producer_warps) {
#pragma unroll
      for (int k = 0; k < Each; ++k) {
        if (token_of(k) < columns) {
          __pipeline_memcpy_async(to + i * Each * warp_width + slot[k], from + i * columns + token_of(k),
                                  sizeof(float));
        }
      }
    }
    __pipeline_commit();  // commit even if empty, because waits count stages
  };
  if (warp > 0) {
    for (int stage = 0; stage < stages - 1; ++stage) fetch(stage);
  }
  float best[Each];
#pragma unroll
  for (float& each : best) each = unreachable;
  float edge = 0;  // left of the first token: only the path start comes from there
  const int last = static_cast<int>(stage_count(frames));
  for (int stage = 0; stage < last; ++stage) {
    if (warp > 0) __pipeline_wait_prior(stages - 2);
    __syncthreads();  // this stage is loaded, and the previous one is free
    if (warp > 0) {
      fetch(stage + stages - 1);
      continue;
    }
    // Scores after the last frame are undefined, and unused.
    const float* const score = staged + stage % stages * stage_frames * Each * warp_width + lane;
    uint32_t advanced[stage_frames] = {};
#pragma unroll
    for (int i = 0; i < stage_frames; ++i) {
      float left = __shfl_up_sync(0xFFFFFFFFU, best[Each - 1], 1);
      if (lane == 0) left = edge;
      edge = unreachable;
#pragma unroll
      for (int k = Each - 1; k >= 0; --k) {
        const float before = k > 0 ? best[k > 0 ? k - 1 : 0] : left, stayed = best[k];
        if (before > stayed) advanced[i] |= 1U << k;
        best[k] = fmaxf(before, stayed) + score[(i * Each + k) * warp_width];
      }
    }
#pragma unroll
    for (int i = 0; i < stage_frames; ++i) {
      decisions[(stage * stage_frames + i) * warp_width + lane] = static_cast<Decisions<Each>>(advanced[i]);
    }
  }
  if (warp > 0) return;
  __syncwarp();
  if (lane > 0) return;
  // Backtracks several frames at once: reads the decisions of all reachable tokens before the first is needed, to hide
  // latency.
  constexpr int reach = 4;
  int token = tokens - 1, end = frames;  // end of the frames of the token
  for (int frame = frames - 1; frame >= 0; frame -= reach) {
    uint32_t advance[reach][reach] = {};
#pragma unroll
    for (int frames_back = 0; frames_back < reach; ++frames_back) {
#pragma unroll
      for (int tokens_back = 0; tokens_back <= frames_back; ++tokens_back) {
        const int at = max(token - tokens_back, 0);
        // The first token has no predecessor, even if its score is not finite.
        if (frame > frames_back && at > 0) {
          advance[frames_back][tokens_back] =
              decisions[(frame - frames_back) * warp_width + at / Each] >> (at % Each) & 1U;
        }
      }
    }
    int tokens_back = 0;
#pragma unroll
    for (int frames_back = 0; frames_back < reach; ++frames_back) {
      if (frame >= frames_back) result[frame - frames_back] = token - tokens_back;
      uint32_t step = advance[frames_back][0];
#pragma unroll
      for (int k = 1; k <= frames_back; ++k) step = tokens_back == k ? advance[frames_back][k] : step;
      if (step != 0) {
        durations[token - tokens_back] = end - (frame - frames_back);
        end = frame - frames_back;
      }
      tokens_back += static_cast<int>(step);
    }
    token -= tokens_back;
  }
  durations[token] = end;
}

// One block per row, tokens strided over threads. Path scores are double-buffered in shared memory; backtracking
// decisions take one bit per token.
constexpr int block_width = 256;

__global__ void align_block(AlignmentProblem problem, uint32_t* scratch) {
  extern __shared__ float shared[];
  const int row = blockIdx.x;
  const int tokens = problem.text_lengths[row], frames = problem.mel_lengths[row];
  const int columns = static_cast<int>(problem.tokens);
  const float* scores = problem.scores + row * problem.frames * problem.tokens;
  int32_t* result = problem.token_of_frame + row * problem.frames;
  const int words = (columns + 31) / 32;
  uint32_t* advanced = scratch + static_cast<int64_t>(row) * problem.frames * words;
  int32_t* durations = problem.durations + row * problem.tokens;
  fill_from(result, 0, problem.frames, -1);
  fill_from(durations, 0, problem.tokens, 0);
  if (tokens == 0 || frames < tokens) return;

  const int rounded = words * 32;  // whole warps for the ballot
  float* last = shared;
  float* now = shared + rounded;
  for (int t = threadIdx.x; t < rounded; t += block_width) last[t] = t == 0 ? scores[0] : unreachable;
  __syncthreads();
  for (int frame = 1; frame < frames; ++frame) {
    const float* score = scores + static_cast<int64_t>(frame) * columns;
    const int reach = min(frame, tokens - 1);
    for (int t = threadIdx.x; t < rounded; t += block_width) {
      const float before = t > 0 ? last[t - 1] : unreachable;
      const float stayed = last[t];
      const uint32_t decision_bits = __ballot_sync(0xFFFFFFFFU, before > stayed);
      if (t % 32 == 0) advanced[frame * words + t / 32] = decision_bits;
      now[t] = t <= reach ? fmaxf(before, stayed) + score[t] : unreachable;
    }
    __syncthreads();
    float* const swap = last;
    last = now;
    now = swap;
  }
  __syncthreads();  // also makes the decisions visible to the backtracking thread
  if (threadIdx.x == 0) {
    int token = tokens - 1;
    for (int frame = frames - 1; frame >= 0; --frame) {
      result[frame] = token;
      ++durations[token];
      if (frame > 0 && token > 0) token -= (advanced[frame * words + token / 32] >> (token % 32)) & 1U;
    }
  }
}

}  // namespace

size_t alignment_scratch_bytes(const AlignmentProblem& problem) {
  return static_cast<size_t>(problem.rows * problem.frames * ((problem.tokens + 31) / 32)) * sizeof(uint32_t);
}

namespace {

// Launches the warp kernel if the problem fits `Each` tokens per lane; returns whether it did.
template <int Each>
bool launch_warp_kernel(const AlignmentProblem& problem, StreamHandle stream) {
  constexpr size_t max_shared_bytes = 160 * 1024;
  const size_t bytes = shared_bytes_per_row<Each>(problem.frames);
  if (problem.tokens > Each * warp_width || bytes > max_shared_bytes) return false;
  if (cudaFuncSetAttribute(align_warp<Each>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)) !=
      cudaSuccess) {
    cudaGetLastError();  // an older GPU has less shared memory: use the block kernel
    return false;
  }
  constexpr int threads = (1 + producer_warps) * warp_width;
  align_warp<Each><<<static_cast<unsigned>(problem.rows), threads, bytes, stream>>>(problem);
  return true;
}

template <int... Each>
bool launch_narrowest(const AlignmentProblem& problem, StreamHandle stream, std::integer_sequence<int, Each...>) {
  return (launch_warp_kernel<Each>(problem, stream) || ...);
}

}  // namespace

void align_on_gpu(const AlignmentProblem& problem, void* scratch, StreamHandle stream) {
  if (launch_narrowest(problem, stream, std::integer_sequence<int, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16>())) return;
  const size_t rounded = static_cast<size_t>((problem.tokens + 31) / 32 * 32);
  align_block<<<static_cast<unsigned>(problem.rows), block_width, 2 * rounded * sizeof(float), stream>>>(
      problem, static_cast<uint32_t*>(scratch));
}

}  // namespace myxtts
