// Frame after frame the best way to each token follows from the frame before. Two forms: a row in one warp's registers,
// for texts that fit there, and a row in a block's shared memory.
#include "model/alignment.h"

#include <type_traits>
#include <utility>

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

namespace myxtts {
namespace {

constexpr int warp_width = 32;
constexpr float never = -1e32F;

// One warp a row. A lane holds `Each` tokens that stand side by side, so that what comes from the left is a register,
// or one shuffle; scores are on their way `ahead` frames before they are needed, and the walk back is in shared memory.
constexpr int ahead = 16;

template <int Each>
using Moves = std::conditional_t<Each <= 8, uint8_t, std::conditional_t<Each <= 16, uint16_t, uint32_t>>;

template <int Each>
size_t shared_bytes_of_warp(int64_t frames) {
  return (ahead * Each * sizeof(float) + static_cast<size_t>(frames) * sizeof(Moves<Each>)) * warp_width;
}

template <int Each>
__global__ void __launch_bounds__(warp_width) align_in_warp(AlignmentProblem problem) {
  extern __shared__ float coming[];                                                  // [ahead][Each][warp_width]
  auto* moves = reinterpret_cast<Moves<Each>*>(coming + ahead * Each * warp_width);  // [frames][warp_width]
  const int row = blockIdx.x, lane = threadIdx.x;
  const int tokens = problem.text_lengths[row], frames = problem.mel_lengths[row];
  const int columns = static_cast<int>(problem.tokens);
  const float* scores = problem.scores + row * problem.frames * problem.tokens;
  int32_t* result = problem.token_of_frame + row * problem.frames;
  const bool possible = tokens > 0 && frames >= tokens;
  for (int frame = (possible ? frames : 0) + lane; frame < problem.frames; frame += warp_width) result[frame] = -1;
  if (!possible) return;

  const auto fetch = [&](int frame) {
#pragma unroll
    for (int k = 0; k < Each; ++k) {
      const int token = lane * Each + k;
      if (frame < frames && token < columns) {
        __pipeline_memcpy_async(&coming[(frame % ahead * Each + k) * warp_width + lane],
                                scores + static_cast<int64_t>(frame) * columns + token, sizeof(float));
      }
    }
    __pipeline_commit();  // also of nothing: what is counted is frames
  };
  for (int frame = 0; frame < ahead; ++frame) fetch(frame);
  float best[Each];
#pragma unroll
  for (float& each : best) each = never;
  for (int frame = 0; frame < frames; ++frame) {
    __pipeline_wait_prior(ahead - 1);  // a lane reads what it fetched itself
    float left = __shfl_up_sync(0xFFFFFFFFU, best[Each - 1], 1);
    if (lane == 0) left = never;
    uint32_t moved = 0;
#pragma unroll
    for (int k = Each - 1; k >= 0; --k) {
      const float score = coming[(frame % ahead * Each + k) * warp_width + lane];
      const float before = k > 0 ? best[k > 0 ? k - 1 : 0] : left, stayed = best[k];
      if (before > stayed) moved |= 1U << k;
      best[k] = frame > 0 ? fmaxf(before, stayed) + score : lane == 0 && k == 0 ? score : never;
    }
    moves[frame * warp_width + lane] = static_cast<Moves<Each>>(moved);
    fetch(frame + ahead);
  }
  __syncwarp();
  if (lane == 0) {
    int token = tokens - 1;
    for (int frame = frames - 1; frame >= 0; --frame) {
      result[frame] = token;
      if (frame > 0) token -= (moves[frame * warp_width + token / Each] >> (token % Each)) & 1;
    }
  }
}

// One block a row; a thread holds the tokens that are its own number apart from the block's width. The best way to each
// token is shared through two rows of shared memory, and where it came from is one bit a token.
constexpr int block_width = 256;

__global__ void align(AlignmentProblem problem, uint32_t* scratch) {
  extern __shared__ float shared[];
  const int row = blockIdx.x;
  const int tokens = problem.text_lengths[row], frames = problem.mel_lengths[row];
  const int columns = static_cast<int>(problem.tokens);
  const float* scores = problem.scores + row * problem.frames * problem.tokens;
  int32_t* result = problem.token_of_frame + row * problem.frames;
  const int words = (columns + 31) / 32;
  uint32_t* moved = scratch + static_cast<int64_t>(row) * problem.frames * words;
  for (int frame = threadIdx.x; frame < problem.frames; frame += block_width) result[frame] = -1;
  if (tokens == 0 || frames < tokens) return;

  const int rounded = words * 32;  // whole warps vote
  float* last = shared;
  float* now = shared + rounded;
  for (int t = threadIdx.x; t < rounded; t += block_width) last[t] = t == 0 ? scores[0] : never;
  __syncthreads();
  for (int frame = 1; frame < frames; ++frame) {
    const float* score = scores + static_cast<int64_t>(frame) * columns;
    const int reach = min(frame, tokens - 1);
    for (int t = threadIdx.x; t < rounded; t += block_width) {
      const float before = t > 0 ? last[t - 1] : never;
      const float stayed = last[t];
      const uint32_t votes = __ballot_sync(0xFFFFFFFFU, before > stayed);
      if (t % 32 == 0) moved[frame * words + t / 32] = votes;
      now[t] = t <= reach ? fmaxf(before, stayed) + score[t] : never;
    }
    __syncthreads();
    float* const swap = last;
    last = now;
    now = swap;
  }
  __syncthreads();  // also makes the votes visible to the thread that walks back
  if (threadIdx.x == 0) {
    int token = tokens - 1;
    for (int frame = frames - 1; frame >= 0; --frame) {
      result[frame] = token;
      if (frame > 0) token -= (moved[frame * words + token / 32] >> (token % 32)) & 1U;
    }
  }
}

}  // namespace

size_t alignment_scratch_bytes(const AlignmentProblem& problem) {
  return static_cast<size_t>(problem.rows * problem.frames * ((problem.tokens + 31) / 32)) * sizeof(uint32_t);
}

namespace {

// Whether the problem fits into warps that hold so many tokens a lane.
template <int Each>
bool run_in_warps(const AlignmentProblem& problem, StreamHandle stream) {
  constexpr size_t most_shared_bytes = 96 * 1024;
  const size_t bytes = shared_bytes_of_warp<Each>(problem.frames);
  if (problem.tokens > Each * warp_width || bytes > most_shared_bytes) return false;
  if (cudaFuncSetAttribute(align_in_warp<Each>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)) !=
      cudaSuccess) {
    cudaGetLastError();  // an older GPU has less: the block's form is for it
    return false;
  }
  align_in_warp<Each><<<static_cast<unsigned>(problem.rows), warp_width, bytes, stream>>>(problem);
  return true;
}

template <int... Each>
bool run_in_narrowest(const AlignmentProblem& problem, StreamHandle stream, std::integer_sequence<int, Each...>) {
  return (run_in_warps<Each>(problem, stream) || ...);
}

}  // namespace

void align_on_gpu(const AlignmentProblem& problem, void* scratch, StreamHandle stream) {
  if (run_in_narrowest(problem, stream, std::integer_sequence<int, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16>())) return;
  const size_t rounded = static_cast<size_t>((problem.tokens + 31) / 32 * 32);
  align<<<static_cast<unsigned>(problem.rows), block_width, 2 * rounded * sizeof(float), stream>>>(
      problem, static_cast<uint32_t*>(scratch));
}

}  // namespace myxtts
