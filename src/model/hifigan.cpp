#include "model/hifigan.h"

#include "base/error.h"

#include <set>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/conv_transpose1d.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/norm_except_dim.h>

namespace myxtts {
namespace {

constexpr int64_t first_channels = 512, end_kernel = 7;

struct Upsampling {
  int64_t rate, kernel;
};
constexpr Upsampling upsamplings[] = {{8, 16}, {8, 16}, {2, 4}, {2, 4}};
constexpr int64_t block_kernels[] = {3, 7, 11};
constexpr int64_t dilations[] = {1, 3, 5};

// The published generator uses the torch default slope for its last activation.
constexpr double slope = 0.1, last_slope = 0.01;

// Records which tensors were read, so that unknown ones can be reported by name.
class Tensors {
 public:
  explicit Tensors(const std::map<std::string, at::Tensor>& tensors) : tensors_(tensors) {}

  HifiganConv conv(const std::string& name, const std::vector<int64_t>& weight_shape, int64_t out_channels) {
    return {weight(name, weight_shape), take(name + ".bias", {out_channels})};
  }

  void reject_unknown() const {
    for (const auto& [name, tensor] : tensors_) {
      if (!read_.contains(name)) reject_input("hifigan", "the HiFi-GAN V1 generator has no tensor '{}'", name);
    }
  }

 private:
  struct SplitNames {
    const char *magnitude, *direction;
  };
  static constexpr SplitNames split_names[] = {
      {".weight_g", ".weight_v"}, {".parametrizations.weight.original0", ".parametrizations.weight.original1"}};

  at::Tensor weight(const std::string& name, const std::vector<int64_t>& shape) {
    for (const auto& [magnitude, direction] : split_names) {
      if (!tensors_.contains(name + magnitude) && !tensors_.contains(name + direction)) continue;
      const at::Tensor g = take(name + magnitude, {shape[0], 1, 1}), v = take(name + direction, shape);
      return v.mul(g.div(at::norm_except_dim(v, 2, 0)));
    }
    return take(name + ".weight", shape);
  }

  at::Tensor take(const std::string& name, const std::vector<int64_t>& shape) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) reject_input("hifigan", "the tensor '{}' is missing", name);
    if (!found->second.defined() || found->second.sizes() != at::IntArrayRef(shape)) {
      const at::IntArrayRef sizes = found->second.defined() ? found->second.sizes() : at::IntArrayRef();
      reject_input("hifigan", "the tensor '{}' has shape [{}]", name, fmt::join(sizes, ", "),
                   way_out("the HiFi-GAN V1 generator needs [{}]", fmt::join(shape, ", ")));
    }
    read_.insert(name);
    return found->second.to(at::kFloat).contiguous();
  }

  const std::map<std::string, at::Tensor>& tensors_;
  std::set<std::string> read_;
};

// Same padding: the output is as long as the input.
at::Tensor convolve(const at::Tensor& x, const HifiganConv& conv, int64_t dilation = 1) {
  const int64_t padding = (conv.weight.size(2) - 1) / 2 * dilation;
  return at::conv1d(x, conv.weight, conv.bias, 1, padding, dilation);
}

at::Tensor run_block(at::Tensor x, const HifiganResidualBlock& block) {
  for (size_t i = 0; i < std::size(dilations); ++i) {
    const at::Tensor inner = convolve(at::leaky_relu(x, slope), block.dilated[i], dilations[i]);
    x = x.add(convolve(at::leaky_relu(inner, slope), block.plain[i]));
  }
  return x;
}

}  // namespace

HifiganGenerator load_hifigan(const std::map<std::string, at::Tensor>& tensors, int64_t n_mels) {
  const at::NoGradGuard no_gradients;
  Tensors source(tensors);
  HifiganGenerator generator;
  generator.n_mels = n_mels;
  generator.first = source.conv("conv_pre", {first_channels, n_mels, end_kernel}, first_channels);
  int64_t channels = first_channels;
  for (size_t i = 0; i < std::size(upsamplings); ++i) {
    const int64_t half = channels / 2;
    generator.upsampling.push_back(
        source.conv(fmt::format("ups.{}", i), {channels, half, upsamplings[i].kernel}, half));
    channels = half;
    for (const int64_t kernel : block_kernels) {
      HifiganResidualBlock block;
      for (size_t j = 0; j < std::size(dilations); ++j) {
        const std::string name = fmt::format("resblocks.{}.convs", generator.blocks.size());
        block.dilated[j] = source.conv(fmt::format("{}1.{}", name, j), {channels, channels, kernel}, channels);
        block.plain[j] = source.conv(fmt::format("{}2.{}", name, j), {channels, channels, kernel}, channels);
      }
      generator.blocks.push_back(std::move(block));
    }
  }
  generator.last = source.conv("conv_post", {1, channels, end_kernel}, 1);
  source.reject_unknown();
  return generator;
}

at::Tensor hifigan_waveform(const HifiganGenerator& generator, const at::Tensor& mel) {
  if (mel.dim() != 3 || mel.size(2) != generator.n_mels) {
    fail("hifigan", "the mel has shape [{}]", fmt::join(mel.sizes(), ", "),
         way_out("it must be [batch, frames, {}]", generator.n_mels));
  }
  if (mel.size(1) == 0) return mel.new_zeros({mel.size(0), 0});
  const at::NoGradGuard no_gradients;
  constexpr size_t kernels = std::size(block_kernels);
  at::Tensor x = convolve(mel.transpose(1, 2), generator.first);
  for (size_t i = 0; i < std::size(upsamplings); ++i) {
    const auto [rate, kernel] = upsamplings[i];
    const HifiganConv& up = generator.upsampling[i];
    x = at::conv_transpose1d(at::leaky_relu(x, slope), up.weight, up.bias, rate, (kernel - rate) / 2);
    at::Tensor sum = run_block(x, generator.blocks[kernels * i]);
    for (size_t j = 1; j < kernels; ++j) sum.add_(run_block(x, generator.blocks[kernels * i + j]));
    x = sum.div_(static_cast<double>(kernels));
  }
  return convolve(at::leaky_relu(x, last_slope), generator.last).tanh().squeeze(1);
}

}  // namespace myxtts
