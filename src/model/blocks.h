// The operations that the voice is built from. Plain functions on tensors; gradients follow by themselves.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace myxtts {

// Which positions of padded rows are valid, in the forms that the operations need. Made once a step.
struct RowMask {
  int64_t positions = 0;
  at::Tensor rotary;         // float [2, positions, head_width / 2]: cosines and sines of the positions' angles
  at::Tensor key_bias;       // float [rows, 1, 1, positions]: 0 for what attention may see, -infinity for the rest. An
                             // empty row sees its padding, so that no softmax is over nothing
  at::Tensor sequence_ends;  // int32 [2 rows + 1]: each row is two sequences, its valid part and its padding, so that
                             // attention over sequences needs no mask. On a GPU in half precision, instead of key_bias
  at::Tensor lengths;        // int32 [rows]. Instead of both, where the fused kernels have an attention of their own
};
// For the fused kernels, or for the plain operations.
RowMask make_row_mask(const at::Tensor& lengths, int64_t positions, at::ScalarType type, bool fused);

// Divided by the root of the mean square of the last dimension, in float whatever the type.
at::Tensor normalize(const at::Tensor& x);

// Self-attention with rotary positions: x [rows, positions, width], weights [3 width, width] and [width, width].
at::Tensor attend(const at::Tensor& x, const at::Tensor& weight_in, const at::Tensor& weight_out, const RowMask& mask);

at::Tensor feed_forward(const at::Tensor& x, const at::Tensor& weight_in, const at::Tensor& weight_out);

// Sines and cosines of times in [0, 1]: [rows] -> [rows, features].
at::Tensor time_waves(const at::Tensor& time, int64_t features);

struct Alignment {
  at::Tensor token_of_frame, durations;  // int32 [rows, frames] and [rows, tokens]
};
// Of normalised frames and means, both without gradients.
Alignment align_frames(const at::Tensor& mel, const at::Tensor& mu, const at::Tensor& text_lengths,
                       const at::Tensor& mel_lengths);

}  // namespace myxtts
