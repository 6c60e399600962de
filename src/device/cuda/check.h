// Converts a CUDA error into an Error that names the call.
#pragma once

#include "base/error.h"

#include <cuda_runtime_api.h>

namespace myxtts {

inline void check_cuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // it is told here: the next launch that looks for one must not find it
  const ErrorCode code = status == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::failed;
  fail_as(code, "cuda", "{}: {}", call, cudaGetErrorString(status));
}

}  // namespace myxtts

#define CUDA_CHECK(call) ::myxtts::check_cuda((call), #call)
