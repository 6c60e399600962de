// Matrix products of the transformer blocks through cuBLASLt directly, with a kernel selection rule of our own, since
// the first heuristic result is often not the fastest. The GELU epilogue saves one pass over the feed-forward
// activations. Fusing the gradient of GELU as well is slower than two separate kernels.
//
// Matrices are contiguous bfloat16 on one GPU; weights are [out, in]. Each function returns false and does nothing if
// this libtorch or this GPU has no such kernel. Any thread.
#pragma once

#include <ATen/core/Tensor.h>

namespace myxtts {

// result = x weight^T
bool tuned_matmul(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& result);
// before = x weight^T and after = gelu(before), in one kernel
bool tuned_matmul_gelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& before,
                       const at::Tensor& after);
// d_x = d_out weight
bool tuned_matmul_backward(const at::Tensor& d_out, const at::Tensor& weight, const at::Tensor& d_x);
// d_weight = d_out^T x, or d_weight += if `accumulate`
bool tuned_weight_gradient(const at::Tensor& d_out, const at::Tensor& x, const at::Tensor& d_weight, bool accumulate);

}  // namespace myxtts
