// Self-attention over padded rows on the CPU, by matrix products row by row. Padding is skipped. Tensors are float and
// contiguous: qkv [rows, positions, 3, heads, head_width] after the rotary embedding, lengths int32 [rows], the others
// [rows, positions, heads, head_width]. Results are 0 in padding. Any thread.
#pragma once

#include <ATen/core/Tensor.h>

namespace myxtts {

at::Tensor cpu_attention(const at::Tensor& qkv, const at::Tensor& lengths);

struct AttentionGradients {
  at::Tensor d_q, d_k, d_v;
};
// Makes the scores again, so that none are kept.
AttentionGradients cpu_attention_backward(const at::Tensor& qkv, const at::Tensor& lengths, const at::Tensor& d_output);

}  // namespace myxtts
