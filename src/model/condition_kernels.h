// Kernels of condition.h, asynchronous on `stream`. The caller owns all memory.
#pragma once

#include "device/device.h"
#include "model/fused.h"

#include <cstdint>

namespace myxtts {

// Vectors of `condition_kernel_width` values.
constexpr int64_t condition_kernel_width = 256;

struct ConditionProblem {
  int64_t rows = 0, heard = 0, frames = 0, speakers = 0, languages = 0;
  const BFloat16* speaker_table = nullptr;     // [speakers, width]
  const BFloat16* language_table = nullptr;    // [languages, width]
  const BFloat16* references = nullptr;        // [heard, frames, width]
  const int32_t* speaker = nullptr;            // [rows]; -1: nobody
  const int32_t* language = nullptr;           // [rows]; -1: none
  const int32_t* reference_lengths = nullptr;  // [heard], in frames; below 1: the row has none
  const float* kept = nullptr;                 // [rows]
  float dropout = 0;                           // a row is without condition if it kept less
};

struct ConditionGradients {
  BFloat16* speaker_table = nullptr;
  BFloat16* language_table = nullptr;
  BFloat16* references = nullptr;
};

// `sums`, [heard, width], are those of the references' frames; rows that use none are not written.
void condition_on_gpu(const ConditionProblem& problem, BFloat16* condition, BFloat16* sums, StreamHandle stream);
// Every gradient is written, in an order of its own that never changes.
void condition_backward_on_gpu(const ConditionProblem& problem, const BFloat16* d_condition, const BFloat16* sums,
                               const ConditionGradients& gradients, StreamHandle stream);

}  // namespace myxtts
