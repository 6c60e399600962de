// The generator of HiFi-GAN (Kong, Kim and Bae, 2020) in its layout V1: a vocoder that makes sound from log-mels of the
// convention it was trained on, 256 samples a frame. For listening only; it is not trained here. The tensors belong to
// the struct; any number of threads may use one.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace myxtts {

struct HifiganConv {
  at::Tensor weight, bias;
};

struct HifiganResidualBlock {
  std::array<HifiganConv, 3> dilated, plain;
};

struct HifiganGenerator {
  HifiganConv first, last;
  std::vector<HifiganConv> upsampling;
  std::vector<HifiganResidualBlock> blocks;  // three after each upsampling
  int64_t n_mels = 0;
};

// Samples for a frame.
constexpr int64_t hifigan_hop = 256;

// From the published names: conv_pre, ups.N, resblocks.N.convs1.M and convs2.M, conv_post, each with .bias and .weight.
// A weight may be split for weight normalisation, as .weight_g and .weight_v or as torch's parametrizations; it is put
// together once, here. Weights come as float32 on the device that they are on. Throws Error that names a tensor which
// is missing, unknown or of another shape.
HifiganGenerator load_hifigan(const std::map<std::string, at::Tensor>& tensors, int64_t n_mels = 80);

// `mel` is float32 [batch, frames, n_mels] on the generator's device. Returns [batch, frames * hifigan_hop] in [-1, 1].
at::Tensor hifigan_sound(const HifiganGenerator& generator, const at::Tensor& mel);

}  // namespace myxtts
