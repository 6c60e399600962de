// A thread makes eight adjacent values, so that every store is 16 bytes, and so is every load where channels come in
// eights.
#include "model/cuda/bfloat16x8.cuh"
#include "model/window_kernels.h"

namespace myxtts {
namespace {

unsigned blocks_for(int64_t threads) { return static_cast<unsigned>((threads + block_width - 1) / block_width); }

// Sizes fit into 32 bits, and dividing those is much faster; places in memory need not.
struct Sizes {
  explicit Sizes(const WindowShape& s)
      : height(static_cast<int>(s.height)),
        width(static_cast<int>(s.width)),
        channels(static_cast<int>(s.channels)),
        tall(static_cast<int>(s.tall)),
        wide(static_cast<int>(s.wide)),
        down(static_cast<int>(s.down)),
        across(static_cast<int>(s.across)),
        out_height(static_cast<int>(s.out_height())),
        out_width(static_cast<int>(s.out_width())),
        values(static_cast<int>(s.values())) {}
  int height, width, channels, tall, wide, down, across, out_height, out_width, values;

  // Where the tap of the window at (row, y, x) looks, as a pixel of all rows; -1: beyond the edges.
  __device__ int64_t pixel(int row, int y, int x, int tap) const {
    const int h = y * down + tap / wide - tall / 2, w = x * across + tap % wide - wide / 2;
    if (h < 0 || h >= height || w < 0 || w >= width) return -1;
    return (static_cast<int64_t>(row) * height + h) * width + w;
  }
};

template <bool Eights>
__global__ void __launch_bounds__(block_width) lay(Sizes s, unsigned threads, const BFloat16* from, BFloat16* windows) {
  const unsigned thread = blockIdx.x * block_width + threadIdx.x;
  if (thread >= threads) return;
  const unsigned packs = static_cast<unsigned>(s.values / pack), window = thread / packs;
  const int value = static_cast<int>(thread % packs) * pack;
  const int x = static_cast<int>(window % s.out_width), y = static_cast<int>(window / s.out_width % s.out_height);
  const int row = static_cast<int>(window / s.out_width / s.out_height);
  uint4 bits = {};
  if constexpr (Eights) {
    const int64_t pixel = s.pixel(row, y, x, value / s.channels);
    if (pixel >= 0) bits = load_bits(from + pixel * s.channels + value % s.channels);
  } else {
    auto* const made = reinterpret_cast<BFloat16*>(&bits);
#pragma unroll
    for (int k = 0; k < pack; ++k) {
      const int tap = (value + k) / s.channels;
      const int64_t pixel = tap < s.tall * s.wide ? s.pixel(row, y, x, tap) : -1;
      if (pixel >= 0) made[k] = from[pixel * s.channels + (value + k) % s.channels];
    }
  }
  *reinterpret_cast<uint4*>(windows + static_cast<int64_t>(thread) * pack) = bits;
}

// Calls `add` with the place of each value of the windows that was read from (row, h, w, c).
template <typename Add>
__device__ void for_each_tap(const Sizes& s, int row, int h, int w, int c, const Add& add) {
  for (int i = 0; i < s.tall; ++i) {
    const int y = h + s.tall / 2 - i;
    if (y < 0 || y % s.down != 0 || y / s.down >= s.out_height) continue;
    for (int k = 0; k < s.wide; ++k) {
      const int x = w + s.wide / 2 - k;
      if (x < 0 || x % s.across != 0 || x / s.across >= s.out_width) continue;
      const int64_t window = (static_cast<int64_t>(row) * s.out_height + y / s.down) * s.out_width + x / s.across;
      add(window * s.values + (i * s.wide + k) * s.channels + c);
    }
  }
}

template <bool Eights>
__global__ void __launch_bounds__(block_width)
    gather(Sizes s, unsigned threads, const BFloat16* d_windows, BFloat16* d_x) {
  const unsigned thread = blockIdx.x * block_width + threadIdx.x;
  if (thread >= threads) return;
  const unsigned packs = static_cast<unsigned>(Eights ? s.channels / pack : s.channels), pixel = thread / packs;
  const int c = static_cast<int>(thread % packs) * (Eights ? pack : 1);
  const int w = static_cast<int>(pixel % s.width), h = static_cast<int>(pixel / s.width % s.height);
  const int row = static_cast<int>(pixel / s.width / s.height);
  if constexpr (Eights) {
    Vec8 sum = {};
    for_each_tap(s, row, h, w, c, [&](int64_t place) {
      const Vec8 part = load(d_windows + place);
#pragma unroll
      for (int k = 0; k < pack; ++k) sum.v[k] += part.v[k];
    });
    store(d_x + static_cast<int64_t>(thread) * pack, sum);
  } else {
    float sum = 0;
    for_each_tap(s, row, h, w, c, [&](int64_t place) { sum += to_float(d_windows[place]); });
    d_x[thread] = to_bfloat16(sum);
  }
}

}  // namespace

void windows_on_gpu(const WindowShape& shape, const BFloat16* x, BFloat16* windows, StreamHandle stream) {
  const int64_t threads = shape.rows * shape.out_height() * shape.out_width() * shape.values() / pack;
  if (threads == 0) return;
  const auto kernel = shape.channels % pack == 0 ? lay<true> : lay<false>;
  kernel<<<blocks_for(threads), block_width, 0, stream>>>(Sizes(shape), static_cast<unsigned>(threads), x, windows);
}

void windows_backward_on_gpu(const WindowShape& shape, const BFloat16* d_windows, BFloat16* d_x, StreamHandle stream) {
  const bool eights = shape.channels % pack == 0;
  const int64_t threads = shape.rows * shape.height * shape.width * shape.channels / (eights ? pack : 1);
  if (threads == 0) return;
  const auto kernel = eights ? gather<true> : gather<false>;
  kernel<<<blocks_for(threads), block_width, 0, stream>>>(Sizes(shape), static_cast<unsigned>(threads), d_windows, d_x);
}

}  // namespace myxtts
