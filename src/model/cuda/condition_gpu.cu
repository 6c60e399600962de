// A block owns a vector, a thread one of its values.
#include "model/condition_kernels.h"
#include "model/cuda/bfloat16x8.cuh"

namespace myxtts {
namespace {

constexpr int width = static_cast<int>(condition_kernel_width);
static_assert(width == block_width, "a thread for each value");
static_assert(width == warp_width * pack, "a warp for each frame");
constexpr int64_t frames_per_block = 32;  // of a gradient

__device__ bool is_dropped(const ConditionProblem& p, int64_t row) { return p.kept[row] < p.dropout; }
__host__ __device__ int64_t parts_of_frames(const ConditionProblem& p) {
  return (p.frames + frames_per_block - 1) / frames_per_block;
}
__device__ bool has_reference(const ConditionProblem& p, int64_t row) {
  return row < p.heard && p.reference_lengths[row] > 0 && !is_dropped(p, row);
}

// What a vector is multiplied with to be as long as any other. Every thread of the block calls it.
__device__ float to_unit(float value) {
  constexpr float eps = 1e-6F;
  const float squares = block_sum(value * value);
  __syncthreads();  // before the next sum
  return rsqrtf(squares / width + eps);
}

// The sum of a reference's frames: each warp adds up its own, then each thread its value of all warps.
__device__ float sum_of_frames(const ConditionProblem& p, int64_t row) {
  __shared__ float of_warps[warps][width];
  const int warp = static_cast<int>(threadIdx.x) / warp_width,
            first = (static_cast<int>(threadIdx.x) % warp_width) * pack;
  const BFloat16* frames = p.references + row * p.frames * width + first;
  Vec8 sum = {};
#pragma unroll 4
  for (int64_t frame = warp; frame < p.reference_lengths[row]; frame += warps) {
    const Vec8 values = load(frames + frame * width);
#pragma unroll
    for (int i = 0; i < pack; ++i) sum.v[i] += values.v[i];
  }
#pragma unroll
  for (int i = 0; i < pack; ++i) of_warps[warp][first + i] = sum.v[i];
  __syncthreads();
  float all = 0;
  for (const auto& of_warp : of_warps) all += of_warp[threadIdx.x];
  return all;
}

__global__ void __launch_bounds__(block_width) choose(ConditionProblem p, BFloat16* condition, BFloat16* sums) {
  const int64_t row = blockIdx.x, at = row * width + threadIdx.x;
  float speaker = 0, language = 0;
  if (!is_dropped(p, row)) {
    if (has_reference(p, row)) {
      const float sum = rounded(sum_of_frames(p, row));
      sums[at] = to_bfloat16(sum);
      speaker = rounded(sum * to_unit(sum));
    } else if (p.speaker[row] >= 0) {
      const float value = to_float(p.speaker_table[static_cast<int64_t>(p.speaker[row]) * width + threadIdx.x]);
      speaker = rounded(value * to_unit(value));
    }
    if (p.language[row] >= 0) {
      const float value = to_float(p.language_table[static_cast<int64_t>(p.language[row]) * width + threadIdx.x]);
      language = rounded(value * to_unit(value));
    }
  }
  condition[at] = to_bfloat16(speaker + language);
}

// The gradient of a vector before it was scaled to unit length.
__device__ float through_unit(float value, float gradient) {
  const float scale = to_unit(value);
  const float along = block_sum(value * gradient) / width;
  return scale * (gradient - value * scale * scale * along);
}

__global__ void __launch_bounds__(block_width)
    gather_gradients(ConditionProblem p, const BFloat16* d_condition, const BFloat16* sums, ConditionGradients d) {
  int64_t block = blockIdx.x;
  const auto gradient = [&](int64_t row) { return to_float(d_condition[row * width + threadIdx.x]); };
  const int64_t parts = parts_of_frames(p);
  if (block < p.heard * parts) {
    const int64_t row = block / parts, first = block % parts * frames_per_block;
    const bool used = has_reference(p, row);
    BFloat16 value = {};
    if (used) value = to_bfloat16(through_unit(to_float(sums[row * width + threadIdx.x]), gradient(row)));
    for (int64_t frame = first; frame < min(first + frames_per_block, p.frames); ++frame) {
      d.references[(row * p.frames + frame) * width + threadIdx.x] =
          used && frame < p.reference_lengths[row] ? value : BFloat16{};
    }
    return;
  }
  block -= p.heard * parts;
  const bool of_language = block >= p.speakers;
  if (of_language) block -= p.speakers;
  float sum = 0;
  for (int64_t row = 0; row < p.rows; ++row) {
    if ((of_language ? p.language : p.speaker)[row] != block || is_dropped(p, row)) continue;
    if (of_language || !has_reference(p, row)) sum += gradient(row);
  }
  const int64_t at = block * width + threadIdx.x;
  const float value = to_float((of_language ? p.language_table : p.speaker_table)[at]);
  (of_language ? d.language_table : d.speaker_table)[at] = to_bfloat16(through_unit(value, sum));
}

}  // namespace

void condition_on_gpu(const ConditionProblem& problem, BFloat16* condition, BFloat16* sums, StreamHandle stream) {
  choose<<<static_cast<unsigned>(problem.rows), block_width, 0, stream>>>(problem, condition, sums);
}

void condition_backward_on_gpu(const ConditionProblem& problem, const BFloat16* d_condition, const BFloat16* sums,
                               const ConditionGradients& gradients, StreamHandle stream) {
  const int64_t blocks = problem.heard * parts_of_frames(problem) + problem.speakers + problem.languages;
  gather_gradients<<<static_cast<unsigned>(blocks), block_width, 0, stream>>>(problem, d_condition, sums, gradients);
}

}  // namespace myxtts
