// What attention's kernels are made of: which positions a warpgroup owns, the tiles that go past it, and sums and
// weights as the products lay them over threads.
#pragma once

#include "model/attention.h"
#include "model/cuda/hopper.cuh"
#include "model/size.h"

#include <cuda_bf16.h>

namespace myxtts::attention {

using namespace hopper;

constexpr int tile = static_cast<int>(attention_tile);
static_assert(head_width == tile_width && tile == group_rows);

constexpr int ahead = 2;                                             // tiles that are on their way
constexpr float score_scale = 0.125F;                                // 1 / sqrt(head_width)
constexpr float exponent_scale = score_scale * 1.4426950408889634F;  // to base 2
constexpr float infinity = __builtin_huge_valf();
constexpr unsigned all_lanes = 0xFFFFFFFFU;

// The same for all threads of a warp, and the compiler is told so: products must not stand where threads may part.
__device__ inline int uniform(int x) { return __shfl_sync(all_lanes, x, 0); }

// One row of a batch and one head of it, and the positions that this thread's warpgroup owns.
template <int Groups>
struct Place {
  int row, head, group, warp, lane;
  int positions, heads, length;
  int first_of_block, first;
  int working;  // warpgroups of the block that own a valid position

  __device__ explicit Place(const Attention& p)
      : row(blockIdx.z / blocks_of_row(p) * gridDim.y + blockIdx.y),
        head(blockIdx.x),
        group(uniform(threadIdx.x / group_width)),
        warp(threadIdx.x / 32 % 4),
        lane(threadIdx.x % 32),
        positions(static_cast<int>(p.positions)),
        heads(static_cast<int>(p.heads)),
        length(uniform(min(p.lengths[row], positions))),
        first_of_block(blockIdx.z % blocks_of_row(p) * Groups * group_rows),
        first(first_of_block + group * group_rows),
        working(min(Groups, max(0, (length - first_of_block + group_rows - 1) / group_rows))) {}

  __host__ __device__ static int blocks_of_row(const Attention& p) {
    return static_cast<int>((p.positions + Groups * group_rows - 1) / (Groups * group_rows));
  }

  // Of `values`; queries are `head`.
  __device__ int key_part() const { return heads + head; }
  __device__ int value_part() const { return 2 * heads + head; }

  __device__ bool works() const { return group < working; }
  __device__ int tiles() const { return (length + tile - 1) / tile; }
  // Whether there is such a tile, and this thread is the one that fetches.
  __device__ bool fetches(int number) const { return threadIdx.x == 0 && number < tiles(); }

  // A thread holds values of two rows of a product, eight apart, and of each two columns out of eight.
  __device__ int own_row(int half) const { return first + warp * 16 + lane / 4 + half * 8; }
  __device__ int own_column(int eighth) const { return eighth * 8 + lane % 4 * 2; }

  // Where this row and head begin: in [rows, positions, parts, heads, head_width], and in [rows, heads, places].
  __device__ int64_t in_values(int parts) const {
    return (static_cast<int64_t>(row) * positions * parts * heads + head) * head_width;
  }
  __device__ int64_t places() const { return (positions + tile - 1) / tile * tile; }
  __device__ int64_t in_vectors() const { return (static_cast<int64_t>(row) * heads + head) * places(); }
};

// Pairs of tiles on their way through a block: keys and values, or queries and the gradients of what they saw.
template <int Stages>
struct alignas(1024) Ring {
  uint8_t tiles[Stages][2][tile * tile_row_bytes];
  float vectors[Stages][2][tile];  // a number a row of each tile, where it is wanted
  Barrier full[Stages], free[Stages], own_here;

  // By all threads of the block.
  template <int Groups>
  __device__ void begin(const Place<Groups>& place) {
    if (threadIdx.x == 0) {
      for (int i = 0; i < Stages; ++i) {
        full[i].begin(1);
        free[i].begin(max(1, place.working) * 4);
      }
      own_here.begin(1);
      publish_barriers();
    }
    __syncthreads();
  }

  // By one thread, once what lay there is no longer needed.
  template <int Groups>
  __device__ Barrier& fetch(unsigned number, const CUtensorMap& first, int first_part, const CUtensorMap& second,
                            int second_part, uint32_t more_bytes, const Place<Groups>& place) {
    const unsigned slot = number % Stages;
    if (number >= Stages) free[slot].wait((number / Stages - 1) % 2);
    full[slot].arrive_expecting(2 * tile * tile_row_bytes + more_bytes);
    copy_tile(tiles[slot][0], first, first_part, static_cast<int>(number) * tile, place.row, full[slot]);
    copy_tile(tiles[slot][1], second, second_part, static_cast<int>(number) * tile, place.row, full[slot]);
    return full[slot];
  }

  template <int Groups>
  __device__ void fetch_keys_and_values(int number, const CUtensorMap& values, const Place<Groups>& place) {
    if (place.fetches(number)) fetch(number, values, place.key_part(), values, place.value_part(), 0, place);
  }

  __device__ void wait_for(unsigned number) { full[number % Stages].wait(number / Stages % 2); }

  // By all threads of a warp: it will not read this pair again.
  __device__ void give_back(unsigned number, int lane) {
    __syncwarp();
    if (lane == 0) free[number % Stages].arrive();
  }

  __device__ float* vector(unsigned number, int which) { return vectors[number % Stages][which]; }
  __device__ uint64_t descriptor(unsigned number, int which) const {
    return tile_descriptor(tiles[number % Stages][which]);
  }
};

// Two tiles of each warpgroup's own rows.
template <int Groups>
struct alignas(1024) OwnTiles {
  uint8_t tiles[Groups][2][group_rows * tile_row_bytes];

  __device__ void fetch(const CUtensorMap& first, int first_part, const CUtensorMap& second, int second_part,
                        Barrier& here, const Place<Groups>& place) {
    here.arrive_expecting(place.working * sizeof(tiles[0]));
    for (int group = 0; group < place.working; ++group) {
      const int position = place.first_of_block + group * group_rows;
      copy_tile(tiles[group][0], first, first_part, position, place.row, here);
      copy_tile(tiles[group][1], second, second_part, position, place.row, here);
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
constexpr int bytes_of = sizeof(Memory) + tile_alignment;

template <typename Memory>
__device__ Memory& shared_memory() {
  extern __shared__ uint8_t bytes[];
  const uintptr_t start = (reinterpret_cast<uintptr_t>(bytes) + tile_alignment - 1) / tile_alignment * tile_alignment;
  return *reinterpret_cast<Memory*>(start);
}

// The compiler does not see that it is shared memory.
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

__device__ inline float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// A row of a product lies with four neighbouring lanes.
__device__ inline float row_sum(float x) {
  x += __shfl_xor_sync(all_lanes, x, 1);
  return x + __shfl_xor_sync(all_lanes, x, 2);
}

__device__ inline float row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(all_lanes, x, 1));
  return fmaxf(x, __shfl_xor_sync(all_lanes, x, 2));
}

__device__ inline float dot_of_16(const Brain* a, const Brain* b) {
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

// 64 x 64 results of a product, and 64 x 64 values as the left side of one.
using Sums = float[32];
using Left = uint32_t[4][4];

// The warpgroup's own rows; zeros in padding, whatever lies there.
template <int Groups>
__device__ void load(Left& to, const Brain* from, int64_t stride, const Place<Groups>& place) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int position = place.own_row(half);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const Brain* two = from + position * stride + place.own_column(i);
      to[i / 2][i % 2 * 2 + half] = position < place.length ? *reinterpret_cast<const uint32_t*>(two) : 0;
    }
  }
}

__device__ inline void to_left(Left& to, const Sums& from) {
#pragma unroll
  for (int i = 0; i < 16; ++i) to[i / 4][i % 4] = pack(from[2 * i], from[2 * i + 1]);
}

// Scores of keys behind the last valid one: their weights are 0.
template <int Groups>
__device__ void hide_padding(Sums& score, int number, const Place<Groups>& place) {
  if ((number + 1) * tile <= place.length) return;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    if (number * tile + place.own_column(i / 4) + i % 2 >= place.length) score[i] = -infinity;
  }
}

// sum = left x (rows of the tile)^T
__device__ inline void times_rows(Sums& sum, const Left& left, uint64_t rows) {
#pragma unroll
  for (int i = 0; i < 4; ++i) multiply<Right::rows>(sum, left[i], rows + i * next_16_columns, i > 0);
}

__device__ inline void times_rows(Sums& sum, uint64_t left, uint64_t rows) {
#pragma unroll
  for (int i = 0; i < 4; ++i) multiply(sum, left + i * next_16_columns, rows + i * next_16_columns, i > 0);
}

// sum += left x (rows of the tile)^T
__device__ inline void add_times_rows(Sums& sum, uint64_t left, uint64_t rows) {
#pragma unroll
  for (int i = 0; i < 4; ++i) multiply(sum, left + i * next_16_columns, rows + i * next_16_columns, 1);
}

// Sums that begin with a number a column.
template <int Groups>
__device__ void begin_columns(Sums& sum, const float* columns, const Place<Groups>& place) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float2 two = shared_pair(columns + place.own_column(i));
    sum[4 * i] = sum[4 * i + 2] = two.x;
    sum[4 * i + 1] = sum[4 * i + 3] = two.y;
  }
}

// sum += left x tile
__device__ inline void add_times(Sums& sum, const Left& left, uint64_t rows) {
#pragma unroll
  for (int i = 0; i < 4; ++i) multiply<Right::columns>(sum, left[i], rows + i * next_16_rows, 1);
}

// The warpgroup's own rows, times a factor each; 0 where that is 0, whatever the row holds: padding weighs what it
// will.
template <int Groups>
__device__ void store(Brain* to, int64_t stride, const Sums& from, const float (&factor)[2],
                      const Place<Groups>& place) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int position = place.own_row(half);
    if (position >= place.positions) continue;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      *reinterpret_cast<uint32_t*>(to + position * stride + place.own_column(i)) =
          factor[half] == 0 ? 0
                            : pack(from[4 * i + 2 * half] * factor[half], from[4 * i + 2 * half + 1] * factor[half]);
    }
  }
}

// Turns the own rows back by their positions. Loads first, so that they come together; what is behind the last position
// is not stored.
template <int Groups>
__device__ void turn_back(Sums& x, const AttentionBackward& b, const Place<Groups>& place) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t angles = min(place.own_row(half), place.positions - 1) * (head_width / 2);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 cosine = *reinterpret_cast<const float2*>(b.cosines + angles + place.own_column(i));
      const float2 sine = *reinterpret_cast<const float2*>(b.sines + angles + place.own_column(i));
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
