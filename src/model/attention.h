// Self-attention over padded rows in one pass each way, on a GPU of the Hopper kind: scores never leave the chip,
// padding costs next to nothing, and sums are added up in one order, so that the same batch gives the same bits.
#pragma once

#include "device/device.h"
#include "model/fused.h"

#include <cstdint>

namespace myxtts {

struct Attention {
  int64_t rows = 0, positions = 0, heads = 0;
  const int32_t* lengths = nullptr;  // of the rows: what is behind is finite, is not seen and sees nothing
  const Brain* values = nullptr;     // queries, keys and values: [rows, positions, 3, heads, head_width]
  Brain* seen = nullptr;             // [rows, positions, heads, head_width]; 0 in padding
  // What makes weights of scores: e^((score + offset) / 8). [rows, heads, attention_places(positions)]; minus infinity
  // in padding.
  float* offsets = nullptr;
};

// The gradient of the values as they were before queries and keys were turned by their position.
struct AttentionBackward {
  Attention forward;  // as it was
  const Brain* d_seen = nullptr;
  const float* cosines = nullptr;  // [positions, head_width / 2]
  const float* sines = nullptr;
  float* d_offsets = nullptr;  // scratch, as large as the offsets: what makes d_score / weight of d_weight
  Brain* d_values = nullptr;   // 0 in padding
};

constexpr int64_t attention_tile = 64;  // positions that are looked at together

constexpr int64_t attention_places(int64_t positions) {
  return (positions + attention_tile - 1) / attention_tile * attention_tile;
}

// Whether the current GPU has what this is made of.
bool gpu_attends();
// Both may be captured.
void attend_on_gpu(const Attention& problem, StreamHandle stream);
void attend_backward_on_gpu(const AttentionBackward& problem, StreamHandle stream);

}  // namespace myxtts
