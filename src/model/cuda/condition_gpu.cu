// A block owns a vector, a thread one of its values.
#include "model/condition_kernels.h"
#include "model/cuda/bfloat16x8.cuh"

namespace myxtts {
namespace {

constexpr int width = static_cast<int>(condition_kernel_width);
static_assert(width == block_width, "a thread for each value");

__device__ bool is_dropped(const ConditionProblem& p, int64_t row) { return p.kept[row] < p.dropout; }
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

__global__ void __launch_bounds__(block_width) choose(ConditionProblem p, BFloat16* condition) {
  const int64_t row = blockIdx.x, at = row * width + threadIdx.x;
  float speaker = 0, language = 0;
  if (!is_dropped(p, row)) {
    if (has_reference(p, row)) {
      speaker = to_float(p.references[at]);
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

// The gradient of a table's vector: what its rows got, through the scaling to unit length.
__device__ float through_unit(float value, float sum) {
  const float scale = to_unit(value);
  const float along = block_sum(value * sum) / width;
  return scale * (sum - value * scale * scale * along);
}

__global__ void __launch_bounds__(block_width)
    gather_gradients(ConditionProblem p, const BFloat16* d_condition, ConditionGradients d) {
  int64_t block = blockIdx.x;
  const auto gradient = [&](int64_t row) { return to_float(d_condition[row * width + threadIdx.x]); };
  if (block < p.heard) {
    d.references[block * width + threadIdx.x] = to_bfloat16(has_reference(p, block) ? gradient(block) : 0);
    return;
  }
  block -= p.heard;
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

void condition_on_gpu(const ConditionProblem& problem, BFloat16* condition, StreamHandle stream) {
  choose<<<static_cast<unsigned>(problem.rows), block_width, 0, stream>>>(problem, condition);
}

void condition_backward_on_gpu(const ConditionProblem& problem, const BFloat16* d_condition,
                               const ConditionGradients& gradients, StreamHandle stream) {
  const auto blocks = static_cast<unsigned>(problem.heard + problem.speakers + problem.languages);
  gather_gradients<<<blocks, block_width, 0, stream>>>(problem, d_condition, gradients);
}

}  // namespace myxtts
