// Launches of the attention kernels, in a header without device code. Asynchronous on `stream`.
#pragma once

#include "model/attention.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace myxtts {

// With tensor maps of `qkv` and `d_output` in tiles of `attention_tile` positions.
cudaError_t launch_attention(const CUtensorMap& qkv, const Attention& problem, cudaStream_t stream);
cudaError_t launch_attention_backward(const CUtensorMap& qkv, const CUtensorMap& d_output,
                                      const AttentionBackward& problem, cudaStream_t stream);

}  // namespace myxtts
