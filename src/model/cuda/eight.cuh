// Values in eights: 16 bytes of bfloat16, so that a lane loads as much at once as it can; and sums over warps and
// blocks.
#pragma once

#include "model/fused.h"

#include <cuda_bf16.h>

namespace myxtts {

constexpr int warp_width = 32;
constexpr int warps = 8;
constexpr int block_width = warps * warp_width;
constexpr int pack = 8;  // values in 16 bytes

struct Eight {
  float v[pack];
};

__device__ inline uint4 load_bits(const Brain* from) { return *reinterpret_cast<const uint4*>(from); }

__device__ inline Eight to_eight(const uint4& bits) {
  Eight out;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 two = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162*>(&bits)[i]);
    out.v[2 * i] = two.x, out.v[2 * i + 1] = two.y;
  }
  return out;
}

__device__ inline Eight load(const Brain* from) { return to_eight(load_bits(from)); }

__device__ inline Eight load(const float* from) {
  const float4 low = reinterpret_cast<const float4*>(from)[0], high = reinterpret_cast<const float4*>(from)[1];
  return {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
}

__device__ inline void store(Brain* to, const Eight& values) {
  uint4 bits;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    reinterpret_cast<__nv_bfloat162*>(&bits)[i] = __floats2bfloat162_rn(values.v[2 * i], values.v[2 * i + 1]);
  }
  *reinterpret_cast<uint4*>(to) = bits;
}

__device__ inline float rounded(float value) { return __bfloat162float(__float2bfloat16_rn(value)); }

__device__ inline Brain to_brain(float value) { return {__bfloat16_as_ushort(__float2bfloat16_rn(value))}; }

__device__ inline float to_float(Brain value) { return __bfloat162float(__ushort_as_bfloat16(value.bits)); }

__device__ inline float warp_sum(float value) {
#pragma unroll
  for (int step = warp_width / 2; step > 0; step /= 2) value += __shfl_xor_sync(0xFFFFFFFFU, value, step);
  return value;
}

__device__ inline float block_sum(float value) {
  __shared__ float of_warp[warps];
  value = warp_sum(value);
  if (threadIdx.x % warp_width == 0) of_warp[threadIdx.x / warp_width] = value;
  __syncthreads();
  float sum = 0;
  for (const float part : of_warp) sum += part;
  return sum;
}

}  // namespace myxtts
