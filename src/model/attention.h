// Fused self-attention over padded rows (FlashAttention style) for Hopper GPUs (sm_90). Scores never reach global
// memory, padding is skipped, and sums have a fixed order, so that equal batches give equal bits. The caller owns all
// memory.
#pragma once

#include "device/device.h"
#include "model/fused.h"

#include <cstdint>

namespace myxtts {

struct Attention {
  int64_t rows = 0, positions = 0, heads = 0;
  const int32_t* lengths = nullptr;  // [rows]; positions after it are padding and must be finite
  const BFloat16* qkv = nullptr;     // after the rotary embedding: [rows, positions, 3, heads, head_width]
  BFloat16* output = nullptr;        // [rows, positions, heads, head_width]; 0 in padding
  // Softmax offset, minus the log-sum-exp in units of unscaled scores: weight = e^((score + neg_lse) / 8). [rows,
  // heads, attention_padded_positions(positions)]; minus infinity in padding.
  float* neg_lse = nullptr;
};

// Gradient with respect to QKV before the rotary embedding.
struct AttentionBackward {
  Attention forward;  // arguments and results of forward
  const BFloat16* d_output = nullptr;
  const float* cosines = nullptr;  // [positions, head_width / 2]
  const float* sines = nullptr;
  float* neg_delta = nullptr;  // scratch of the shape of neg_lse: -sum(output * d_output) per query
  BFloat16* d_qkv = nullptr;   // 0 in padding
};

constexpr int64_t attention_tile = 64;  // positions per tile

constexpr int64_t attention_padded_positions(int64_t positions) {
  return (positions + attention_tile - 1) / attention_tile * attention_tile;
}

// Whether the current GPU supports this kernel.
bool gpu_has_fused_attention();
// Both may be captured in a CUDA graph.
void attention_on_gpu(const Attention& problem, StreamHandle stream);
void attention_backward_on_gpu(const AttentionBackward& problem, StreamHandle stream);

}  // namespace myxtts
