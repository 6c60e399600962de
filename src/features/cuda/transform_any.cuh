// FFT of any length by a whole block: passes of radix 2, 3, 4, 5 and 8 between two buffers in shared memory.
#pragma once

#include "features/cuda/transform_32.cuh"

namespace myxtts::gpu {

// One pass. `Complex` is float2 or double2; `twiddles` holds e^(-2 pi i k / n).
template <int radix, typename Complex>
__device__ inline void transform_pass(const Complex* twiddles, int n, const Complex* in, Complex* out, int groups,
                                      int stride) {
  using Real = decltype(Complex::x);
  for (int b = threadIdx.x; b < groups * stride; b += blockDim.x) {
    const int group = b / stride, q = b % stride;
    Real re[radix], im[radix];
#pragma unroll
    for (int k = 0; k < radix; ++k) {
      const Complex x = in[q + stride * (group + groups * k)];
      re[k] = x.x, im[k] = x.y;
    }
    if constexpr (radix == 8) {
      transform_8(re, im);
    } else if constexpr (radix == 4) {
      transform_4(re, im);
    } else {  // direct DFT, for the few passes of radix 2, 3 and 5
      Real sum_re[radix], sum_im[radix];
#pragma unroll
      for (int j = 0; j < radix; ++j) {
        sum_re[j] = sum_im[j] = 0;
#pragma unroll
        for (int k = 0; k < radix; ++k) {
          const Complex w = twiddles[j * k % radix * (n / radix)];
          sum_re[j] += re[k] * w.x - im[k] * w.y;
          sum_im[j] += re[k] * w.y + im[k] * w.x;
        }
      }
#pragma unroll
      for (int j = 0; j < radix; ++j) re[j] = sum_re[j], im[j] = sum_im[j];
    }
#pragma unroll
    for (int j = 0; j < radix; ++j) {
      const Complex w = twiddles[group * j * stride];
      out[q + stride * (radix * group + j)] = {re[j] * w.x - im[j] * w.y, re[j] * w.y + im[j] * w.x};
    }
  }
  __syncthreads();
}

}  // namespace myxtts::gpu
