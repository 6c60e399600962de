// Trunk: a stack of blocks with a final norm, as used by the encoder, with adaptive norms by the decoder, and without
// attention by the vocoder. Two implementations: plain operations with autograd, and fused kernels with a hand-written
// backward. Any thread.
#pragma once

#include "model/blocks.h"

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace myxtts {

// Receives each activation by name, for debugging.
using Inspect = std::function<void(const std::string& name, const at::Tensor& value)>;

struct Trunk {
  std::string name;
  struct Block {
    // Weights; backward writes their .grad(). ffn_in is [hidden, kernel width]: with a kernel over 1 a convolution.
    // Without attention_in the block is a feed-forward alone.
    at::Tensor attention_in, attention_out, ffn_in, ffn_out;
    at::Tensor attention_norm, ffn_norm;  // weights, undefined with a modulation
    at::Tensor depthwise;                 // [kernel, width]: convolution before the feed-forward; may be undefined
  };
  std::vector<Block> blocks;
  at::Tensor norm;                   // weight of the final norm, undefined with a modulation
  bool overwrite_gradients = false;  // fused backward overwrites matrix gradients instead of accumulating
  std::function<void(const at::Tensor& gradient)> gradient_ready;  // see Weights
  DropoutKey dropout;                                              // of each branch before it is added
  uint32_t first_site = 0;  // of the dropout: two sites per block, attention and feed-forward

  // Adaptive norms: scale, shift and gate of attention and of feed-forward, [blocks, rows, 6, width].
  at::Tensor modulation;
  at::Tensor final_modulation;  // scale and shift of the final norm, [rows, 2, width]
};

// x [rows, positions, width] -> output of the final norm, same shape.
at::Tensor run_trunk(const Trunk& trunk, const at::Tensor& x, const RowMask& mask, const Inspect& inspect = {});
at::Tensor run_trunk_fused(const Trunk& trunk, const at::Tensor& x, const RowMask& mask);

// Whether fused kernels support the type and device of `x`: float on the CPU, bfloat16 on a GPU.
bool has_fused_kernels(const at::Tensor& x);

}  // namespace myxtts
