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

// By all threads of a block.
__device__ void fill_from(int32_t* values, int first, int64_t end, int32_t value) {
  for (int64_t i = first + static_cast<int>(threadIdx.x); i < end; i += blockDim.x) values[i] = value;
}

// One block a row, and in it one warp that finds the way, and others that fetch scores for it. A lane of the first
// holds `Each` tokens that stand side by side, so that what comes from the left is a register, or one shuffle. Scores
// come a piece of some frames at a time, several pieces ahead. The walk back is in shared memory.
constexpr int piece = 16;  // frames
constexpr int pieces = 3;  // in shared memory at once: one is used, the others are coming
constexpr int fetching_warps = 3;

template <int Each>
using Moves = std::conditional_t<Each <= 8, uint8_t, std::conditional_t<Each <= 16, uint16_t, uint32_t>>;

__host__ __device__ constexpr int64_t whole_pieces(int64_t frames) { return (frames + piece - 1) / piece; }

template <int Each>
size_t shared_bytes_of_row(int64_t frames) {
  const auto moves = static_cast<size_t>(whole_pieces(frames) * piece) * sizeof(Moves<Each>);
  return (pieces * piece * Each * sizeof(float) + moves) * warp_width;
}

template <int Each>
__global__ void __launch_bounds__((1 + fetching_warps) * warp_width) align_in_warp(AlignmentProblem problem) {
  extern __shared__ float coming[];  // [pieces][piece][Each][warp_width]
  auto* const moves =
      reinterpret_cast<Moves<Each>*>(coming + pieces * piece * Each * warp_width);  // [frames][warp_width]
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
  int place[Each];  // of this lane's tokens among those of a frame
#pragma unroll
  for (int k = 0; k < Each; ++k) place[k] = token_of(k) % Each * warp_width + token_of(k) / Each;
  const auto fetch = [&](int number) {
    float* const to = coming + number % pieces * piece * Each * warp_width;
    const float* const from = scores + static_cast<int64_t>(number) * piece * columns;
    const int count = min(piece, frames - number * piece);
    for (int i = warp - 1; i < count; i += fetching_warps) {
#pragma unroll
      for (int k = 0; k < Each; ++k) {
        if (token_of(k) < columns) {
          __pipeline_memcpy_async(to + i * Each * warp_width + place[k], from + i * columns + token_of(k),
                                  sizeof(float));
        }
      }
    }
    __pipeline_commit();  // also of nothing: what is counted is pieces
  };
  if (warp > 0) {
    for (int number = 0; number < pieces - 1; ++number) fetch(number);
  }
  float best[Each];
#pragma unroll
  for (float& each : best) each = never;
  float edge = 0;  // left of the first token: the way begins there, and never comes back
  const int last = static_cast<int>(whole_pieces(frames));
  for (int number = 0; number < last; ++number) {
    if (warp > 0) __pipeline_wait_prior(pieces - 2);
    __syncthreads();  // the piece is here, and the one before it is no longer needed
    if (warp > 0) {
      fetch(number + pieces - 1);
      continue;
    }
    // Behind the last frame scores are anything: nothing comes of them.
    const float* const score = coming + number % pieces * piece * Each * warp_width + lane;
    uint32_t moved[piece] = {};
#pragma unroll
    for (int i = 0; i < piece; ++i) {
      float left = __shfl_up_sync(0xFFFFFFFFU, best[Each - 1], 1);
      if (lane == 0) left = edge;
      edge = never;
#pragma unroll
      for (int k = Each - 1; k >= 0; --k) {
        const float before = k > 0 ? best[k > 0 ? k - 1 : 0] : left, stayed = best[k];
        if (before > stayed) moved[i] |= 1U << k;
        best[k] = fmaxf(before, stayed) + score[(i * Each + k) * warp_width];
      }
    }
#pragma unroll
    for (int i = 0; i < piece; ++i) {
      moves[(number * piece + i) * warp_width + lane] = static_cast<Moves<Each>>(moved[i]);
    }
  }
  if (warp > 0) return;
  __syncwarp();
  if (lane > 0) return;
  // Some frames at once: what each of them says of every token that the way can be at by then is read before the first
  // is decided.
  constexpr int reach = 4;
  int token = tokens - 1, end = frames;  // of the token's frames
  for (int frame = frames - 1; frame >= 0; frame -= reach) {
    uint32_t said[reach][reach] = {};
#pragma unroll
    for (int back = 0; back < reach; ++back) {
#pragma unroll
      for (int fewer = 0; fewer <= back; ++fewer) {
        const int at = max(token - fewer, 0);
        // The first token has none before it, however bad its way is.
        if (frame > back && at > 0) {
          said[back][fewer] = moves[(frame - back) * warp_width + at / Each] >> (at % Each) & 1U;
        }
      }
    }
    int fewer = 0;
#pragma unroll
    for (int back = 0; back < reach; ++back) {
      if (frame >= back) result[frame - back] = token - fewer;
      uint32_t step = said[back][0];
#pragma unroll
      for (int k = 1; k <= back; ++k) step = fewer == k ? said[back][k] : step;
      if (step != 0) {
        durations[token - fewer] = end - (frame - back);
        end = frame - back;
      }
      fewer += static_cast<int>(step);
    }
    token -= fewer;
  }
  durations[token] = end;
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
  int32_t* durations = problem.durations + row * problem.tokens;
  fill_from(result, 0, problem.frames, -1);
  fill_from(durations, 0, problem.tokens, 0);
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
      ++durations[token];
      if (frame > 0 && token > 0) token -= (moved[frame * words + token / 32] >> (token % 32)) & 1U;
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
  constexpr size_t most_shared_bytes = 160 * 1024;
  const size_t bytes = shared_bytes_of_row<Each>(problem.frames);
  if (problem.tokens > Each * warp_width || bytes > most_shared_bytes) return false;
  if (cudaFuncSetAttribute(align_in_warp<Each>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)) !=
      cudaSuccess) {
    cudaGetLastError();  // an older GPU has less: the block's form is for it
    return false;
  }
  constexpr int threads = (1 + fetching_warps) * warp_width;
  align_in_warp<Each><<<static_cast<unsigned>(problem.rows), threads, bytes, stream>>>(problem);
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
