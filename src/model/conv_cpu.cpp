#include "model/conv.h"

#include <algorithm>

namespace myxtts {
namespace {

// Calls `work` with each tap and the position that it reaches from `position`, if that is inside the row.
template <typename Work>
void each_tap(const ConvShape& shape, int64_t row, int64_t position, const Work& work) {
  for (int64_t tap = 0; tap < shape.kernel; ++tap) {
    const int64_t reached = position + tap - shape.kernel / 2;
    if (reached >= 0 && reached < shape.lengths[row]) work(tap, reached);
  }
}

}  // namespace

void unfold_on_cpu(const Unfold<float>& p, int64_t row) {
  const ConvShape& s = p.shape;
  for (int64_t i = 0; i < s.positions; ++i) {
    float* const to = p.unfolded + (row * s.positions + i) * s.kernel * s.width;
    std::fill_n(to, s.kernel * s.width, 0.0F);
    each_tap(s, row, i, [&](int64_t tap, int64_t reached) {
      std::copy_n(p.x + (row * s.positions + reached) * s.width, s.width, to + tap * s.width);
    });
  }
}

void unfold_backward_on_cpu(const UnfoldBackward<float>& p, int64_t row) {
  const ConvShape& s = p.shape;
  std::fill_n(p.d_x + row * s.positions * s.width, s.positions * s.width, 0.0F);
  for (int64_t i = 0; i < s.positions; ++i) {
    each_tap(s, row, i, [&](int64_t tap, int64_t reached) {
      const float* const from = p.d_unfolded + ((row * s.positions + i) * s.kernel + tap) * s.width;
      float* const to = p.d_x + (row * s.positions + reached) * s.width;
      for (int64_t c = 0; c < s.width; ++c) to[c] += from[c];
    });
  }
}

void depthwise_on_cpu(const Depthwise<float>& p, int64_t row) {
  const ConvShape& s = p.shape;
  for (int64_t i = 0; i < s.positions; ++i) {
    float* const y = p.y + (row * s.positions + i) * s.width;
    std::copy_n(p.x + (row * s.positions + i) * s.width, s.width, y);
    each_tap(s, row, i, [&](int64_t tap, int64_t reached) {
      const float* const x = p.x + (row * s.positions + reached) * s.width;
      const float* const weight = p.weight + tap * s.width;
      for (int64_t c = 0; c < s.width; ++c) y[c] += weight[c] * x[c];
    });
  }
}

void depthwise_backward_on_cpu(const DepthwiseBackward<float>& p, int64_t row) {
  const ConvShape& s = p.shape;
  float* const parts = p.parts + row * s.kernel * s.width;
  std::fill_n(parts, s.kernel * s.width, 0.0F);
  std::copy_n(p.d_y + row * s.positions * s.width, s.positions * s.width, p.d_x + row * s.positions * s.width);
  for (int64_t i = 0; i < s.positions; ++i) {
    const float* const d_y = p.d_y + (row * s.positions + i) * s.width;
    each_tap(s, row, i, [&](int64_t tap, int64_t reached) {
      const float* const x = p.x + (row * s.positions + reached) * s.width;
      const float* const weight = p.weight + tap * s.width;
      float* const d_x = p.d_x + (row * s.positions + reached) * s.width;
      float* const d_weight = parts + tap * s.width;
      for (int64_t c = 0; c < s.width; ++c) {
        d_x[c] += weight[c] * d_y[c];
        d_weight[c] += x[c] * d_y[c];
      }
    });
  }
}

}  // namespace myxtts
