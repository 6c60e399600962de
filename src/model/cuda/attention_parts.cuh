// Building blocks of the attention kernels: tile coordinates, the ring of prefetched tiles, and wgmma operands in
// registers.
#pragma once

#include "model/attention.h"
#include "model/cuda/hopper.cuh"
#include "model/size.h"

#include <cuda_bf16.h>

namespace myxtts::attention {

using namespace hopper;

constexpr int tile = static_cast<int>(attention_tile);
static_assert(head_width == tile_width && tile == warpgroup_rows);

constexpr int prefetch_tiles = 2;                                    // tiles in flight
constexpr float score_scale = 0.125F;                                // 1 / sqrt(head_width)
constexpr float exponent_scale = score_scale * 1.4426950408889634F;  // to base 2
constexpr float infinity = __builtin_huge_valf();
constexpr unsigned all_lanes = 0xFFFFFFFFU;

// Makes a value warp-uniform for the compiler, because wgmma must not be in divergent code.
__device__ inline int uniform(int x) { return __shfl_sync(all_lanes, x, 0); }

// Row and head of this block, and the positions that the warpgroup of this thread owns.
template <int Groups>
struct TileCoords {
  int row, head, group, warp, lane;
  int positions, heads, length;
  int block_first, first;
  int active_groups;  // warpgroups of the block with a valid position

  __device__ explicit TileCoords(const Attention& p)
      : row(blockIdx.z / blocks_per_row(p) * gridDim.y + blockIdx.y),
        head(blockIdx.x),
        group(uniform(threadIdx.x / warpgroup_threads)),
        warp(threadIdx.x / 32 % 4),
        lane(threadIdx.x % 32),
        positions(static_cast<int>(p.positions)),
        heads(static_cast<int>(p.heads)),
        length(uniform(min(p.lengths[row], positions))),
        block_first(blockIdx.z % blocks_per_row(p) * Groups * warpgroup_rows),
        first(block_first + group * warpgroup_rows),
        active_groups(min(Groups, max(0, (length - block_first + warpgroup_rows - 1) / warpgroup_rows))) {}

  __host__ __device__ static int blocks_per_row(const Attention& p) {
    return static_cast<int>((p.positions + Groups * warpgroup_rows - 1) / (Groups * warpgroup_rows));
  }

  // Indices into the `3 heads` parts of qkv; the query part is `head`.
  __device__ int key_part() const { return heads + head; }
  __device__ int value_part() const { return 2 * heads + head; }

  __device__ bool is_active() const { return group < active_groups; }
  __device__ int tiles() const { return (length + tile - 1) / tile; }
  // Whether the tile exists and this thread issues its copy.
  __device__ bool fetches(int number) const { return threadIdx.x == 0 && number < tiles(); }

  // wgmma layout: a thread holds two rows, eight apart, and two of every eight columns.
  __device__ int own_row(int half) const { return first + warp * 16 + lane / 4 + half * 8; }
  __device__ int own_column(int eighth) const { return eighth * 8 + lane % 4 * 2; }

  // Offset of this row and head in [rows, positions, parts, heads, head_width], and in [rows, heads, padded_positions].
  __device__ int64_t base_offset(int parts) const {
    return (static_cast<int64_t>(row) * positions * parts * heads + head) * head_width;
  }
  __device__ int64_t padded_positions() const { return (positions + tile - 1) / tile * tile; }
  __device__ int64_t vector_offset() const { return (static_cast<int64_t>(row) * heads + head) * padded_positions(); }
};

// Pairs of tiles in flight: keys and values, or queries and d_output.
template <int Stages>
struct alignas(1024) Ring {
  uint8_t tiles[Stages][2][tile * tile_row_bytes];
  float vectors[Stages][2][tile];  // optional: one number per row of each tile
  Barrier full[Stages], free[Stages], own_full;

  // Called by all threads of the block.
  template <int Groups>
  __device__ void init(const TileCoords<Groups>& coords) {
    if (threadIdx.x == 0) {
      for (int i = 0; i < Stages; ++i) {
        full[i].init(1);
        free[i].init(max(1, coords.active_groups) * 4);
      }
      own_full.init(1);
      fence_barrier_init();
    }
    __syncthreads();
  }

  // Called by one thread. Waits until the slot is released.
  template <int Groups>
  __device__ Barrier& fetch(unsigned number, const CUtensorMap& first, int first_part, const CUtensorMap& second,
                            int second_part, uint32_t more_bytes, const TileCoords<Groups>& coords) {
    const unsigned slot = number % Stages;
    if (number >= Stages) free[slot].wait((number / Stages - 1) % 2);
    full[slot].arrive_expect_bytes(2 * tile * tile_row_bytes + more_bytes);
    copy_tile(tiles[slot][0], first, first_part, static_cast<int>(number) * tile, coords.row, full[slot]);
    copy_tile(tiles[slot][1], second, second_part, static_cast<int>(number) * tile, coords.row, full[slot]);
    return full[slot];
  }

  template <int Groups>
  __device__ void fetch_keys_and_values(int number, const CUtensorMap& qkv, const TileCoords<Groups>& coords) {
    if (coords.fetches(number)) fetch(number, qkv, coords.key_part(), qkv, coords.value_part(), 0, coords);
  }

  __device__ void wait_for(unsigned number) { full[number % Stages].wait(number / Stages % 2); }

  // Called by all threads of a warp after their last read of this pair.
  __device__ void release(unsigned number, int lane) {
    __syncwarp();
    if (lane == 0) free[number % Stages].arrive();
  }

  __device__ float* vector(unsigned number, int which) { return vectors[number % Stages][which]; }
  __device__ uint64_t descriptor(unsigned number, int which) const {
    return tile_descriptor(tiles[number % Stages][which]);
  }
};

// Two tiles per warpgroup, of its own rows.
template <int Groups>
struct alignas(1024) OwnTiles {
  uint8_t tiles[Groups][2][warpgroup_rows * tile_row_bytes];

  __device__ void fetch(const CUtensorMap& first, int first_part, const CUtensorMap& second, int second_part,
                        Barrier& here, const TileCoords<Groups>& coords) {
    here.arrive_expect_bytes(coords.active_groups * sizeof(tiles[0]));
    for (int group = 0; group < coords.active_groups; ++group) {
      const int position = coords.block_first + group * warpgroup_rows;
      copy_tile(tiles[group][0], first, first_part, position, coords.row, here);
      copy_tile(tiles[group][1], second, second_part, position, coords.row, here);
    }
  }
};

template <int Groups, int Stages>
struct alignas(1024) RingAndOwn {
  Ring<Stages> ring;
  OwnTiles<Groups> own;
};

constexpr int tile_alignment = 1024;
template <typename Memory>
constexpr int shared_bytes = sizeof(Memory) + tile_alignment;

template <typename Memory>
__device__ Memory& shared_memory() {
  extern __shared__ uint8_t bytes[];
  const uintptr_t start = (reinterpret_cast<uintptr_t>(bytes) + tile_alignment - 1) / tile_alignment * tile_alignment;
  return *reinterpret_cast<Memory*>(start);
}

// Explicit ld.shared, because the compiler cannot prove the address space.
__device__ inline float2 shared_pair(const float* from) {
  float2 two;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(two.x), "=f"(two.y) : "r"(shared_address(from)));
  return two;
}

__device__ inline uint32_t pack(float low, float high) {
  const __nv_bfloat162 two = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const uint32_t&>(two);
}

__device__ inline float2 unpack(uint32_t bits) {
  return __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(bits));
}

__device__ inline float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Four neighbouring lanes hold one row of an accumulator.
__device__ inline float row_sum(float x) {
  x += __shfl_xor_sync(all_lanes, x, 1);
  return x + __shfl_xor_sync(all_lanes, x, 2);
}

__device__ inline float row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(all_lanes, x, 1));
  return fmaxf(x, __shfl_xor_sync(all_lanes, x, 2));
}

__device__ inline float dot_of_16(const BFloat16* a, const BFloat16* b) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint4 x = reinterpret_cast<const uint4*>(a)[i], y = reinterpret_cast<const uint4*>(b)[i];
    const uint32_t u[] = {x.x, x.y, x.z, x.w}, v[] = {y.x, y.y, y.z, y.w};
#pragma unroll
    for (int k = 0; k < 4; ++k) sum += unpack(u[k]).x * unpack(v[k]).x + unpack(u[k]).y * unpack(v[k]).y;
  }
  return sum;
}

// Per-thread fragments of a 64 x 64 accumulator and of a 64 x 64 left operand.
using Accumulator = float[32];
using LeftOperand = uint32_t[4][4];

// Loads the own rows of the warpgroup, with zeros in padding.
template <int Groups>
__device__ void load(LeftOperand& to, const BFloat16* from, int64_t stride, const TileCoords<Groups>& coords) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int position = coords.own_row(half);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const BFloat16* two = from + position * stride + coords.own_column(i);
      to[i / 2][i % 2 * 2 + half] = position < coords.length ? *reinterpret_cast<const uint32_t*>(two) : 0;
    }
  }
}

__device__ inline void to_left_operand(LeftOperand& to, const Accumulator& from) {
#pragma unroll
  for (int i = 0; i < 16; ++i) to[i / 4][i % 4] = pack(from[2 * i], from[2 * i + 1]);
}

// Sets the scores of padded keys to -infinity.
template <int Groups>
__device__ void mask_padding(Accumulator& score, int number, const TileCoords<Groups>& coords) {
  if ((number + 1) * tile <= coords.length) return;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    if (number * tile + coords.own_column(i / 4) + i % 2 >= coords.length) score[i] = -infinity;
  }
}

// sum = left x (rows of the tile)^T
__device__ inline void matmul_transposed(Accumulator& sum, const LeftOperand& left, uint64_t rows) {
#pragma unroll
  for (int i = 0; i < 4; ++i) wgmma<RightOperand::rows>(sum, left[i], rows + i * next_16_columns, i > 0);
}

__device__ inline void matmul_transposed(Accumulator& sum, uint64_t left, uint64_t rows) {
#pragma unroll
  for (int i = 0; i < 4; ++i) wgmma(sum, left + i * next_16_columns, rows + i * next_16_columns, i > 0);
}

// sum += left x (rows of the tile)^T
__device__ inline void matmul_transposed_add(Accumulator& sum, uint64_t left, uint64_t rows) {
#pragma unroll
  for (int i = 0; i < 4; ++i) wgmma(sum, left + i * next_16_columns, rows + i * next_16_columns, 1);
}

// Initialises each column of an accumulator with one number.
template <int Groups>
__device__ void broadcast_columns(Accumulator& sum, const float* columns, const TileCoords<Groups>& coords) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float2 two = shared_pair(columns + coords.own_column(i));
    sum[4 * i] = sum[4 * i + 2] = two.x;
    sum[4 * i + 1] = sum[4 * i + 3] = two.y;
  }
}

// sum += left x tile
__device__ inline void matmul_add(Accumulator& sum, const LeftOperand& left, uint64_t rows) {
#pragma unroll
  for (int i = 0; i < 4; ++i) wgmma<RightOperand::columns>(sum, left[i], rows + i * next_16_rows, 1);
}

// Stores the own rows of the warpgroup times a factor per row. Factor 0 stores 0 even if padding is not finite.
template <int Groups>
__device__ void store(BFloat16* to, int64_t stride, const Accumulator& from, const float (&factor)[2],
                      const TileCoords<Groups>& coords) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int position = coords.own_row(half);
    if (position >= coords.positions) continue;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      *reinterpret_cast<uint32_t*>(to + position * stride + coords.own_column(i)) =
          factor[half] == 0 ? 0
                            : pack(from[4 * i + 2 * half] * factor[half], from[4 * i + 2 * half + 1] * factor[half]);
    }
  }
}

// Applies the inverse rotary embedding to the own rows. Rows after the last position are clamped, and not stored.
template <int Groups>
__device__ void rotary_backward(Accumulator& x, const AttentionBackward& b, const TileCoords<Groups>& coords) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t angles = min(coords.own_row(half), coords.positions - 1) * (head_width / 2);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 cosine = *reinterpret_cast<const float2*>(b.cosines + angles + coords.own_column(i));
      const float2 sine = *reinterpret_cast<const float2*>(b.sines + angles + coords.own_column(i));
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        float &low = x[4 * i + 2 * half + k], &high = x[4 * (i + 4) + 2 * half + k];
        const float c = k == 0 ? cosine.x : cosine.y, s = k == 0 ? sine.x : sine.y, was_low = low;
        low = low * c + high * s;
        high = high * c - was_low * s;
      }
    }
  }
}

}  // namespace myxtts::attention
