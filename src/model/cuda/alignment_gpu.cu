// One block a row; a thread holds the tokens that are its own number apart from the block's width. Frame after frame:
// the best way to each token is shared through two rows of shared memory, and where it came from is one bit a token.
#include "model/alignment.h"

#include <cuda_runtime.h>

namespace myxtts {
namespace {

constexpr int block_width = 256;
constexpr float never = -1e32F;

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

void align_on_gpu(const AlignmentProblem& problem, void* scratch, StreamHandle stream) {
  const size_t rounded = static_cast<size_t>((problem.tokens + 31) / 32 * 32);
  align<<<static_cast<unsigned>(problem.rows), block_width, 2 * rounded * sizeof(float), stream>>>(
      problem, static_cast<uint32_t*>(scratch));
}

}  // namespace myxtts
