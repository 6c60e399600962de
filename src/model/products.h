// Matrix products of the voice's blocks by cuBLASLt itself, with kernels of our choice, since its own first choice is
// often not the fastest. One has GELU behind it in the same kernel, so that the wide values between a block's two
// feed-forward products pass through memory once less. (GELU's gradient could stand behind its product too, but that
// takes longer than both by themselves.)
//
// Contiguous matrices of bfloat16 on one GPU; weights are [out, in]. Each is false, and nothing is done, where this
// libtorch or this GPU has no such kernel, or the matrices are not on a GPU.
#pragma once

#include <ATen/core/Tensor.h>

namespace myxtts {

// result = x weight^T
bool chosen_product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& result);
// before = x weight^T and after = gelu(before)
bool chosen_product_gelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& before,
                         const at::Tensor& after);
// d_x = d_out weight
bool chosen_product_backward(const at::Tensor& d_out, const at::Tensor& weight, const at::Tensor& d_x);
// d_weight = d_out^T x, or is added to
bool chosen_weight_gradient(const at::Tensor& d_out, const at::Tensor& x, const at::Tensor& d_weight, bool adds);

}  // namespace myxtts
