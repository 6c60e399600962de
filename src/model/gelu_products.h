// A matrix product with GELU behind it in the same kernel, by cuBLASLt: the wide values between a block's two
// feed-forward products pass through memory once less. On a GPU in bfloat16. (The gradient's product with GELU's behind
// it is there too, but slower than both by themselves.)
#pragma once

#include <ATen/core/Tensor.h>

namespace myxtts {

// before = x weight^T and after = gelu(before): x [n, in], weight [out, in]. False, and nothing is done, where this
// libtorch or this GPU has no such kernel.
bool product_gelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& before, const at::Tensor& after);

}  // namespace myxtts
