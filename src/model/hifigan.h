// HiFi-GAN generator V1 (Kong, Kim and Bae, 2020): converts log-mels of the convention it was trained on into a
// waveform, 256 samples per frame. Inference only. The struct owns its tensors; any number of threads may use one.
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

// Frames on either side that a sample depends on, rounded up.
constexpr int64_t hifigan_context_frames = 16;

// Samples per frame.
constexpr int64_t hifigan_hop = 256;

// From the published names: conv_pre, ups.N, resblocks.N.convs1.M and convs2.M, conv_post, each with .bias and .weight.
// Weight normalisation (.weight_g and .weight_v, or torch's parametrizations) is folded into the weight once, here.
// Converts to float32 and keeps the device. Throws Error that names a missing, unknown or misshapen tensor.
HifiganGenerator load_hifigan(const std::map<std::string, at::Tensor>& tensors, int64_t n_mels = 80);

// `mel` is float32 [batch, frames, n_mels] on the generator's device. Returns [batch, frames * hifigan_hop] in [-1, 1].
at::Tensor hifigan_waveform(const HifiganGenerator& generator, const at::Tensor& mel);

}  // namespace myxtts
