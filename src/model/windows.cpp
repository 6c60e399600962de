#include "model/windows.h"

#include "model/torch_stream.h"
#include "model/window_kernels.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace myxtts {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

WindowShape shape_of(at::IntArrayRef x, int64_t tall, int64_t wide, int64_t down, int64_t across) {
  return {x[0], x[1], x[2], x[3], tall, wide, down, across};
}

const BFloat16* values_of(const at::Tensor& x) { return static_cast<const BFloat16*>(x.const_data_ptr()); }
BFloat16* values_to(at::Tensor& x) { return static_cast<BFloat16*>(x.mutable_data_ptr()); }

struct WindowsFunction : torch::autograd::Function<WindowsFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, int64_t tall, int64_t wide, int64_t down,
                            int64_t across) {
    for (const auto& [name, value] : {std::pair("tall", tall), {"wide", wide}, {"down", down}, {"across", across}}) {
      context->saved_data[name] = value;
    }
    context->saved_data["sizes"] = x.sizes().vec();
    const WindowShape shape = shape_of(x.sizes(), tall, wide, down, across);
    at::Tensor windows = at::empty({shape.rows, shape.out_height(), shape.out_width(), shape.values()}, x.options());
    windows_on_gpu(shape, values_of(x.contiguous()), values_to(windows), current_stream(x.get_device()));
    return windows;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = [&](const char* name) { return context->saved_data[name].toInt(); };
    const std::vector<int64_t> sizes = context->saved_data["sizes"].toIntVector();
    const at::Tensor gradient = gradients.front().contiguous();
    at::Tensor d_x = at::empty(sizes, gradient.options());
    windows_backward_on_gpu(shape_of(sizes, saved("tall"), saved("wide"), saved("down"), saved("across")),
                            values_of(gradient), values_to(d_x), current_stream(d_x.get_device()));
    return {d_x, {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor lay_windows(const at::Tensor& x, int64_t tall, int64_t wide, int64_t down, int64_t across) {
  if (x.is_cuda() && x.scalar_type() == at::kBFloat16) return WindowsFunction::apply(x, tall, wide, down, across);
  const WindowShape shape = shape_of(x.sizes(), tall, wide, down, across);
  const at::Tensor padded = at::constant_pad_nd(x, {0, 0, wide / 2, wide / 2, tall / 2, tall / 2});
  const at::Tensor windows =
      padded.unfold(1, tall, down).unfold(2, wide, across).permute({0, 1, 2, 4, 5, 3}).flatten(3);
  return at::constant_pad_nd(windows, {0, shape.values() - windows.size(3)});
}

}  // namespace myxtts
