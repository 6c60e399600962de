// A stack of transformer blocks and the norm behind them: the encoder's and the decoder's, which differ in what scales
// their norms. Twice: of plain operations, whose gradients follow by themselves, and fused, with gradients by hand.
#pragma once

#include "model/blocks.h"

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace myxtts {

// Is shown what is computed, by name, where someone looks for an error.
using Inspect = std::function<void(const std::string& name, const at::Tensor& value)>;

struct Trunk {
  std::string name;
  struct Block {
    at::Tensor attention_in, attention_out, feed_in, feed_out;  // weights; a gradient is added to each one's own
    at::Tensor attention_norm, feed_norm;                       // weights, without a modulation
  };
  std::vector<Block> blocks;
  at::Tensor norm;               // weight of the last norm, without a modulation
  bool fresh_gradients = false;  // fused: gradients of matrices are written, not added to what is there

  // By the flow's time: scale, shift and gate of attention and of feed-forward, [blocks, rows, 6, width], and scale and
  // shift of the last norm, [rows, 2, width].
  at::Tensor modulation, last_modulation;
};

// x [rows, positions, width] -> the same, normed.
at::Tensor run_trunk(const Trunk& trunk, const at::Tensor& x, const RowMask& mask, const Inspect& inspect = {});
at::Tensor run_trunk_fused(const Trunk& trunk, const at::Tensor& x, const RowMask& mask);

// Whether there are fused kernels for such values: float on the CPU, bfloat16 on a GPU.
bool can_fuse(const at::Tensor& x);

}  // namespace myxtts
