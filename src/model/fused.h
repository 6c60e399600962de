// Memory-bound operations between the matrix products of the voice, each fused into one pass: float on the CPU as the
// reference, bfloat16 on a GPU. The caller owns all memory; calls on a GPU are asynchronous on `stream`.
#pragma once

#include "device/device.h"
#include "model/dropout.h"

#include <cstdint>

namespace myxtts {

// The bits of a bfloat16, for headers without CUDA or libtorch.
struct BFloat16 {
  uint16_t bits;
};

// One vector of `width` values per row of a batch, `stride` elements apart; stride 0 broadcasts one vector.
template <typename T>
struct PerRow {
  const T* values = nullptr;
  int64_t stride = 0;
};

// Residual add and RMS norm: sum = x + gate * dropout(branch); normed = sum * inverse_rms * (scale_base + scale) +
// shift.
template <typename T>
struct AddNorm {
  int64_t rows = 0, positions = 0, width = 0;  // x, branch, sum, normed: [rows, positions, width]
  const T* x = nullptr;
  const T* branch = nullptr;  // null: sum is x and is not written
  Dropout dropout;
  PerRow<T> gate;  // null: 1
  PerRow<T> scale;
  float scale_base = 0;
  PerRow<T> shift;  // null: 0
  T* sum = nullptr;
  T* normed = nullptr;
  float* inverse_rms = nullptr;  // [rows, positions]
};

// Gradients of the inputs of AddNorm, from those of `normed` and `sum`.
template <typename T>
struct AddNormBackward {
  AddNorm<T> forward;  // arguments of forward; `sum` is the input of the norm, even without a branch
  const T* d_normed = nullptr;
  const T* d_sum = nullptr;  // null: 0
  T* d_x = nullptr;
  T* d_branch = nullptr;  // null without a gate and without dropout, when it equals d_x
  // Partial sums of d_scale, d_shift and d_gate over a chunk of positions: [rows, chunks, 3, width].
  float* parts = nullptr;
  int64_t chunks = 1;
};

// Reduces the partial sums of several norms of one shape over chunks: [rows, chunks, 3, width] to three targets per
// norm.
constexpr int max_norms = 40;
template <typename T>
struct SumParts {
  struct Target {
    T* to = nullptr;     // null: skip
    int64_t stride = 0;  // between rows; 0: reduce over all rows and accumulate
  };
  struct Norm {
    const float* parts = nullptr;
    Target targets[3];
  };
  int64_t rows = 0, chunks = 0, width = 0;
  int norms = 0;
  Norm list[max_norms];
};

// Applies rotary position embeddings to queries and keys in place.
template <typename T>
struct Rotary {
  int64_t rows = 0, positions = 0, heads = 0;
  T* qkv = nullptr;                // [rows, positions, 3, heads, head_width]
  const float* cosines = nullptr;  // [positions, head_width / 2]
  const float* sines = nullptr;
};

// Gradient of QKV before the rotary embedding, from those of q, k and v after it: each [rows, positions, heads,
// head_width].
template <typename T>
struct RotaryBackward {
  Rotary<T> to;
  const T* d_q = nullptr;
  const T* d_k = nullptr;
  const T* d_v = nullptr;
};

// gradient *= derivative of GELU (tanh) at `before`. The CPU uses libtorch instead.
struct GeluBackward {
  int64_t count = 0;  // a multiple of 8
  const BFloat16* before = nullptr;
  BFloat16* gradient = nullptr;
};

// Input of the decoder: x_t, interpolated between noise and mel, and the mean of its token. Also the squared prior
// error.
template <typename T>
struct FlowInput {
  int64_t rows = 0, frames = 0, tokens = 0, n_mels = 0;
  const float* mel = nullptr;  // normalised; mel and noise are [rows, frames, n_mels]
  const float* noise = nullptr;
  const float* time = nullptr;              // [rows]
  const float* mu = nullptr;                // [rows, tokens, n_mels]
  const int32_t* token_of_frame = nullptr;  // [rows, frames]; -1 in padding
  float sigma_min = 0;                      // noise level at the end of the flow
  T* input = nullptr;                       // [rows, frames, 2 n_mels]
  float* squares = nullptr;                 // sums of (mel - mu)^2 over valid frames, one per chunk of frames: [chunks]
  int64_t chunks = 1;
};

// Gradient of mu, from those of `input` and of the squared error.
template <typename T>
struct FlowInputBackward {
  FlowInput<T> forward;
  const T* d_input = nullptr;
  const float* d_squares = nullptr;  // scalar
  float* d_mu = nullptr;             // [rows, tokens, n_mels]
};

// Flow-matching loss: sums of (flow - target)^2 over valid frames, and its gradient.
template <typename T>
struct FlowError {
  int64_t rows = 0, frames = 0, n_mels = 0;
  const float* mel = nullptr;
  const float* noise = nullptr;
  const int32_t* token_of_frame = nullptr;
  float sigma_min = 0;
  const T* flow = nullptr;   // [rows, frames, n_mels]
  float* squares = nullptr;  // [chunks]
  int64_t chunks = 1;
  const float* d_squares = nullptr;  // scalar; backward
  T* d_flow = nullptr;
};

// Multipliers of a dropout as a tensor [rows, positions, width], for operations that are not fused.
struct DropoutMask {
  int64_t rows = 0, positions = 0, width = 0;  // width is a multiple of dropout_group
  Dropout dropout;
  float* multipliers = nullptr;
};

// CPU functions process a range of positions or one row, so that threads can share the work.
void dropout_mask_on_cpu(const DropoutMask& problem, int64_t first_position, int64_t end);
void add_norm_on_cpu(const AddNorm<float>& problem, int64_t first_position, int64_t end);
void add_norm_backward_on_cpu(const AddNormBackward<float>& problem, int64_t row);
void sum_parts_on_cpu(const SumParts<float>& problem);
void rotary_on_cpu(const Rotary<float>& problem, int64_t first_position, int64_t end);
void rotary_backward_on_cpu(const RotaryBackward<float>& problem, int64_t first_position, int64_t end);
void flow_input_on_cpu(const FlowInput<float>& problem, int64_t row);  // as many chunks as rows
void flow_input_backward_on_cpu(const FlowInputBackward<float>& problem, int64_t row);
void flow_error_on_cpu(const FlowError<float>& problem, int64_t row);
void flow_error_backward_on_cpu(const FlowError<float>& problem, int64_t row);

// GPU functions process everything. Each may be captured in a CUDA graph.
constexpr int64_t max_fused_width = 1024;  // values in the registers of one warp
int64_t add_norm_chunks(int64_t rows, int64_t positions);
int64_t flow_chunks(int64_t rows, int64_t frames);
void dropout_mask_on_gpu(const DropoutMask& problem, StreamHandle stream);
void add_norm_on_gpu(const AddNorm<BFloat16>& problem, StreamHandle stream);
void add_norm_backward_on_gpu(const AddNormBackward<BFloat16>& problem, StreamHandle stream);
void sum_parts_on_gpu(const SumParts<BFloat16>& problem, StreamHandle stream);
void fill_rotary_table_on_gpu(int64_t positions, float* cosines_and_sines, StreamHandle stream);
void rotary_on_gpu(const Rotary<BFloat16>& problem, StreamHandle stream);
void rotary_backward_on_gpu(const RotaryBackward<BFloat16>& problem, StreamHandle stream);
void gelu_backward_on_gpu(const GeluBackward& problem, StreamHandle stream);
void flow_input_on_gpu(const FlowInput<BFloat16>& problem, StreamHandle stream);
void flow_input_backward_on_gpu(const FlowInputBackward<BFloat16>& problem, StreamHandle stream);
void flow_error_on_gpu(const FlowError<BFloat16>& problem, StreamHandle stream);
void flow_error_backward_on_gpu(const FlowError<BFloat16>& problem, StreamHandle stream);

}  // namespace myxtts
