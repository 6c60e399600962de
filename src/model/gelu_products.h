// Matrix products with GELU or its gradient behind them in the same kernel, by cuBLASLt: the wide values between a block's
// two feed-forward products pass through memory once less each way. On a GPU in bfloat16.
#pragma once

#include <ATen/core/Tensor.h>

namespace myxtts {

// before = x weight^T and after = gelu(before): x [n, in], weight [out, in]. False, and nothing is done, where this
// libtorch or this GPU has no such kernel; so too below.
bool product_gelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& before, const at::Tensor& after);

// d_before = gelu'(before) * (d_out weight): d_out [n, out], weight [out, in], before [n, in].
bool product_gelu_backward(const at::Tensor& d_out, const at::Tensor& weight, const at::Tensor& before,
                           const at::Tensor& d_before);

}  // namespace myxtts
