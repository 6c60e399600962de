// Convolutions over neighbouring positions of [rows, positions, width]: float on the CPU as the reference, bfloat16 on
// a GPU. Positions outside a row are zeros, so that padding never changes a result. Kernels are odd. The caller owns
// all memory; calls on a GPU are asynchronous on `stream` and may be captured.
#pragma once

#include "device/device.h"
#include "model/fused.h"

#include <cstdint>

namespace myxtts {

struct ConvShape {
  int64_t rows = 0, positions = 0, width = 0, kernel = 0;
  const int32_t* lengths = nullptr;  // [rows]
};

// Neighbours side by side, so that a convolution becomes a matrix product: unfolded [rows, positions, kernel, width].
template <typename T>
struct Unfold {
  ConvShape shape;
  const T* x = nullptr;
  T* unfolded = nullptr;
};
template <typename T>
struct UnfoldBackward {
  ConvShape shape;
  const T* d_unfolded = nullptr;
  T* d_x = nullptr;
};

// y = x + x convolved with one kernel per channel.
template <typename T>
struct Depthwise {
  ConvShape shape;
  const T* weight = nullptr;  // [kernel, width]
  const T* x = nullptr;
  T* y = nullptr;
};
template <typename T>
struct DepthwiseBackward {
  ConvShape shape;
  const T* weight = nullptr;
  const T* x = nullptr;
  const T* d_y = nullptr;
  T* d_x = nullptr;
  float* parts = nullptr;  // partial sums of the weight's gradient: [rows, chunks, kernel, width]
  int64_t chunks = 1;      // of positions
};

// One row each, so that threads can share the work.
void unfold_on_cpu(const Unfold<float>& problem, int64_t row);
void unfold_backward_on_cpu(const UnfoldBackward<float>& problem, int64_t row);
void depthwise_on_cpu(const Depthwise<float>& problem, int64_t row);
void depthwise_backward_on_cpu(const DepthwiseBackward<float>& problem, int64_t row);

constexpr int64_t max_depthwise_kernel = 7;
int64_t depthwise_chunks(int64_t rows, int64_t positions);
void unfold_on_gpu(const Unfold<BFloat16>& problem, StreamHandle stream);
void unfold_backward_on_gpu(const UnfoldBackward<BFloat16>& problem, StreamHandle stream);
void depthwise_on_gpu(const Depthwise<BFloat16>& problem, StreamHandle stream);
void depthwise_backward_on_gpu(const DepthwiseBackward<BFloat16>& problem, StreamHandle stream);

}  // namespace myxtts
