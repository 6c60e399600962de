// Operations that touch memory once instead of many times: what stands between the matrix products of the voice, each
// in one pass. In float on the CPU, the reference; in bfloat16 on a GPU.
#pragma once

#include "device/device.h"

#include <cstdint>

namespace myxtts {

// A bfloat16 as plain bits.
struct Brain {
  uint16_t bits;
};

// One vector of `width` a row of a batch, `stride` apart; 0: the same for every row.
template <typename T>
struct PerRow {
  const T* values = nullptr;
  int64_t stride = 0;
};

// sum = x + gate * branch; normed = sum / root mean square of sum * (scale_base + scale) + shift.
template <typename T>
struct AddNorm {
  int64_t rows = 0, positions = 0, width = 0;  // x, branch, sum, normed: [rows, positions, width]
  const T* x = nullptr;
  const T* branch = nullptr;  // null: sum is x and is not written
  PerRow<T> gate;             // null: 1
  PerRow<T> scale;
  float scale_base = 0;
  PerRow<T> shift;  // null: 0
  T* sum = nullptr;
  T* normed = nullptr;
  float* inverse = nullptr;  // of the root mean square: [rows, positions]
};

// From the gradients of `normed` and of `sum` those of what they were made from.
template <typename T>
struct AddNormBackward {
  AddNorm<T> forward;  // as it was; `sum` is what was normed, also without a branch
  const T* d_normed = nullptr;
  const T* d_sum = nullptr;  // null: 0
  T* d_x = nullptr;
  T* d_branch = nullptr;  // null without a gate: it is d_x
  // Sums over the positions of a chunk, to be added up: [rows, chunks, 3, width], of scale, shift and gate.
  float* parts = nullptr;
  int64_t chunks = 1;
};

// Adds up the parts of several norms of one shape over their chunks: [rows, chunks, 3, width] -> three targets each.
constexpr int most_sums = 40;
template <typename T>
struct SumParts {
  struct Target {
    T* to = nullptr;     // null: not wanted
    int64_t stride = 0;  // of rows; 0: over all rows, added to what is there
  };
  struct Norm {
    const float* parts = nullptr;
    Target targets[3];
  };
  int64_t rows = 0, chunks = 0, width = 0;
  int norms = 0;
  Norm list[most_sums];
};

// Turns queries and keys by their position, in place: values [rows, positions, 3, heads, head_width].
template <typename T>
struct Rotation {
  int64_t rows = 0, positions = 0, heads = 0;
  T* values = nullptr;
  const float* cosines = nullptr;  // [positions, head_width / 2]
  const float* sines = nullptr;
};

// The gradient of values from those of the queries, keys and values that were turned, each [rows, positions, heads,
// head_width].
template <typename T>
struct RotationBackward {
  Rotation<T> to;
  const T* queries = nullptr;
  const T* keys = nullptr;
  const T* values = nullptr;
};

// gradient *= the slope of gelu, in its tanh form, at `before`. On the CPU libtorch does it.
struct GeluBackward {
  int64_t count = 0;  // a multiple of 8
  const Brain* before = nullptr;
  Brain* gradient = nullptr;
};

// What the decoder is given: a frame on its way from noise to mel, and its token's mean. And the prior's loss.
template <typename T>
struct FlowInput {
  int64_t rows = 0, frames = 0, tokens = 0, n_mels = 0;
  const float* mel = nullptr;  // normalised; noise too: [rows, frames, n_mels]
  const float* noise = nullptr;
  const float* time = nullptr;              // [rows]
  const float* mu = nullptr;                // [rows, tokens, n_mels]
  const int32_t* token_of_frame = nullptr;  // [rows, frames]; -1 in padding
  float sigma = 0;                          // noise that is left at the end
  T* input = nullptr;                       // [rows, frames, 2 n_mels]
  float* squares = nullptr;                 // sums of (mel - mu)^2 over valid frames, one a chunk of frames: [chunks]
  int64_t chunks = 1;
};

// The gradient of mu, from that of `input` and of the sum of squares.
template <typename T>
struct FlowInputBackward {
  FlowInput<T> forward;
  const T* d_input = nullptr;
  const float* d_squares = nullptr;  // scalar
  float* d_mu = nullptr;             // [rows, tokens, n_mels]
};

// Sums of (flow - target)^2 over valid frames, and its gradient.
template <typename T>
struct FlowError {
  int64_t rows = 0, frames = 0, n_mels = 0;
  const float* mel = nullptr;
  const float* noise = nullptr;
  const int32_t* token_of_frame = nullptr;
  float sigma = 0;
  const T* flow = nullptr;   // [rows, frames, n_mels]
  float* squares = nullptr;  // [chunks]
  int64_t chunks = 1;
  const float* d_squares = nullptr;  // scalar; backward
  T* d_flow = nullptr;
};

// The CPU does a range of something at a time, so that threads can share the work: positions of all rows, or rows.
void add_norm_on_cpu(const AddNorm<float>& problem, int64_t first_position, int64_t end);
void add_norm_backward_on_cpu(const AddNormBackward<float>& problem, int64_t row);
void sum_parts_on_cpu(const SumParts<float>& problem);
void rotate_on_cpu(const Rotation<float>& problem, int64_t first_position, int64_t end);
void rotate_back_on_cpu(const RotationBackward<float>& problem, int64_t first_position, int64_t end);
void flow_input_on_cpu(const FlowInput<float>& problem, int64_t row);  // as many chunks as rows
void flow_input_backward_on_cpu(const FlowInputBackward<float>& problem, int64_t row);
void flow_error_on_cpu(const FlowError<float>& problem, int64_t row);
void flow_error_backward_on_cpu(const FlowError<float>& problem, int64_t row);

// A GPU does all of it. Each may be captured.
constexpr int64_t widest_fused = 1024;  // values that a warp holds
int64_t add_norm_chunks(int64_t rows, int64_t positions);
int64_t flow_chunks(int64_t rows, int64_t frames);
void add_norm_on_gpu(const AddNorm<Brain>& problem, StreamHandle stream);
void add_norm_backward_on_gpu(const AddNormBackward<Brain>& problem, StreamHandle stream);
void sum_parts_on_gpu(const SumParts<Brain>& problem, StreamHandle stream);
void fill_rotary_on_gpu(int64_t positions, float* cosines_and_sines, StreamHandle stream);
void rotate_on_gpu(const Rotation<Brain>& problem, StreamHandle stream);
void rotate_back_on_gpu(const RotationBackward<Brain>& problem, StreamHandle stream);
void gelu_backward_on_gpu(const GeluBackward& problem, StreamHandle stream);
void flow_input_on_gpu(const FlowInput<Brain>& problem, StreamHandle stream);
void flow_input_backward_on_gpu(const FlowInputBackward<Brain>& problem, StreamHandle stream);
void flow_error_on_gpu(const FlowError<Brain>& problem, StreamHandle stream);
void flow_error_backward_on_gpu(const FlowError<Brain>& problem, StreamHandle stream);

}  // namespace myxtts
