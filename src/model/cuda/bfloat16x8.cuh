// Vectorised access to eight bfloat16 values (16 bytes, the widest load), and sums over warps and blocks.
#pragma once

#include "model/fused.h"

#include <cuda_bf16.h>

namespace myxtts {

constexpr int warp_width = 32;
constexpr int warps = 8;
constexpr int block_width = warps * warp_width;
constexpr int pack = 8;  // values in 16 bytes

struct Vec8 {
  float v[pack];
};

__device__ inline uint4 load_bits(const BFloat16* from) { return *reinterpret_cast<const uint4*>(from); }

__device__ inline Vec8 to_vec8(const uint4& bits) {
  Vec8 out;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 two = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162*>(&bits)[i]);
    out.v[2 * i] = two.x, out.v[2 * i + 1] = two.y;
  }
  return out;
}

__device__ inline Vec8 load(const BFloat16* from) { return to_vec8(load_bits(from)); }

__device__ inline Vec8 load(const float* from) {
  const float4 low = reinterpret_cast<const float4*>(from)[0], high = reinterpret_cast<const float4*>(from)[1];
  return {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
}

__device__ inline void store(BFloat16* to, const Vec8& values) {
  uint4 bits;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    reinterpret_cast<__nv_bfloat162*>(&bits)[i] = __floats2bfloat162_rn(values.v[2 * i], values.v[2 * i + 1]);
  }
  *reinterpret_cast<uint4*>(to) = bits;
}

__device__ inline float rounded(float value) { return __bfloat162float(__float2bfloat16_rn(value)); }

__device__ inline BFloat16 to_bfloat16(float value) { return {__bfloat16_as_ushort(__float2bfloat16_rn(value))}; }

__device__ inline float to_float(BFloat16 value) { return __bfloat162float(__ushort_as_bfloat16(value.bits)); }

__device__ inline float warp_sum(float value) {
#pragma unroll
  for (int step = warp_width / 2; step > 0; step /= 2) value += __shfl_xor_sync(0xFFFFFFFFU, value, step);
  return value;
}

__device__ inline float block_sum(float value) {
  __shared__ float warp_sums[warps];
  value = warp_sum(value);
  if (threadIdx.x % warp_width == 0) warp_sums[threadIdx.x / warp_width] = value;
  __syncthreads();
  float sum = 0;
  for (const float part : warp_sums) sum += part;
  return sum;
}

}  // namespace myxtts
