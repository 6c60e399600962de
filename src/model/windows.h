// Windows over height and width, laid side by side, so that a convolution becomes one matrix product. Values beyond the
// edges are zeros. Any thread.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace myxtts {

// `x` is [rows, height, width, channels]: windows of `tall` by `wide`, both odd, one every `down` rows and `across`
// columns. [rows, out height, out width, values]: each window row by row, with zeros at its end up to a multiple of
// eight values. Differentiable.
at::Tensor lay_windows(const at::Tensor& x, int64_t tall, int64_t wide, int64_t down, int64_t across);

}  // namespace myxtts
