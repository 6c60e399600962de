// Kernels of windows.h, asynchronous on `stream`. The caller owns all memory.
#pragma once

#include "device/device.h"
#include "model/fused.h"

#include <cstdint>

namespace myxtts {

struct WindowShape {
  int64_t rows = 0, height = 0, width = 0, channels = 0;  // of what the windows lie on
  int64_t tall = 1, wide = 1;                             // of a window; odd
  int64_t down = 1, across = 1;                           // from one window to the next

  int64_t out_height() const { return (height - 1) / down + 1; }
  int64_t out_width() const { return (width - 1) / across + 1; }
  // Of a window, with zeros at its end up to a multiple of eight, which matrix products are faster with.
  int64_t values() const { return (tall * wide * channels + 7) / 8 * 8; }
};

// The windows of `x`, and the sum of what the windows hold of each value.
void windows_on_gpu(const WindowShape& shape, const BFloat16* x, BFloat16* windows, StreamHandle stream);
void windows_backward_on_gpu(const WindowShape& shape, const BFloat16* d_windows, BFloat16* d_x, StreamHandle stream);

}  // namespace myxtts
