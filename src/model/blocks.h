// Layers of the voice as pure functions on tensors, with gradients by autograd. Any thread.
#pragma once

#include "model/dropout.h"

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace myxtts {

// Padding mask of a batch in the form that each attention backend needs. Created once per step.
struct RowMask {
  int64_t positions = 0;
  at::Tensor rotary;         // float [2, positions, head_width / 2]: cosines and sines of the rotary angles
  at::Tensor key_bias;       // float [rows, 1, 1, positions]: 0 for valid keys, -infinity for padding. An empty row
                             // attends to its padding, so that no softmax is empty
  at::Tensor sequence_ends;  // int32 [2 rows + 1]: cumulative sequence lengths for variable-length flash attention,
                             // with padding as a sequence of its own. Replaces key_bias on a GPU in half precision
  at::Tensor lengths;        // int32 [rows]: replaces both if the fused attention kernel is available
  at::Tensor row_lengths;    // int32 [rows]: always, for convolutions
};
// `fused`: for the fused kernels, otherwise for the plain operations.
RowMask make_row_mask(const at::Tensor& lengths, int64_t positions, at::ScalarType type, bool fused);

// Dropout of one step. Sites number the places in the network; see dropout.h.
struct DropoutKey {
  at::Tensor key;  // int64 scalar on the device of the data
  double rate = 0;
  RowPlace rows = {};

  bool on() const { return key.defined() && rate > 0; }
};
at::Tensor dropout(const at::Tensor& x, const DropoutKey& key, uint32_t site);

// Neighbouring positions side by side, zeros outside of a row: [rows, positions, width] -> [rows, positions, kernel
// width].
at::Tensor unfold_positions(const at::Tensor& x, const at::Tensor& lengths, int64_t kernel);
// x + x convolved with one kernel per channel: weight [kernel, width].
at::Tensor depthwise_conv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& lengths);

// RMS norm over the last dimension without a weight, computed in float.
at::Tensor rms_norm(const at::Tensor& x);

// Self-attention with rotary embeddings: x [rows, positions, width], weights [3 width, width] and [width, width].
at::Tensor attend(const at::Tensor& x, const at::Tensor& weight_in, const at::Tensor& weight_out, const RowMask& mask);

// Two linear layers with GELU (tanh) between them. The first is a convolution if its weight is [hidden, kernel width].
at::Tensor feed_forward(const at::Tensor& x, const at::Tensor& weight_in, const at::Tensor& weight_out,
                        const at::Tensor& lengths);

// Sinusoidal embedding of flow times in [0, 1]: [rows] -> [rows, width].
at::Tensor time_embedding(const at::Tensor& time, int64_t width);

struct Alignment {
  at::Tensor token_of_frame, durations;  // int32 [rows, frames] and [rows, tokens]
};
// Monotonic alignment search over normalised frames and token means; neither may require gradients.
Alignment align_frames(const at::Tensor& mel, const at::Tensor& mu, const at::Tensor& text_lengths,
                       const at::Tensor& mel_lengths);

}  // namespace myxtts
