#pragma once

#include "model/attention.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace myxtts {

// With maps of `values` and of `d_seen`, in tiles of `attention_tile` positions.
cudaError_t launch_attention(const CUtensorMap& values, const Attention& problem, cudaStream_t stream);
cudaError_t launch_attention_backward(const CUtensorMap& values, const CUtensorMap& d_seen,
                                      const AttentionBackward& problem, cudaStream_t stream);

}  // namespace myxtts
