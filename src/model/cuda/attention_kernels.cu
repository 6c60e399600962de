// A warpgroup owns 64 queries (or, for the gradients of keys and values, 64 keys) and walks over the tiles of the other
// side, which one thread of the block fetches ahead for all its warpgroups. While the products of one warpgroup run, the
// others work on their softmax.
//
// Names: a score is a query times a key; a weight is what the softmax makes of it.
#include "model/cuda/attention_kernels.h"
#include "model/cuda/hopper.cuh"
#include "model/size.h"

#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace myxtts {
namespace {

using namespace hopper;

constexpr int tile = static_cast<int>(attention_tile);
static_assert(head_width == tile_width && tile == group_rows);

constexpr int stages = 4;  // tiles that are on the chip: those in use, and those on their way
constexpr int ahead = 2;
constexpr float score_scale = 0.125F;  // 1 / sqrt(head_width)
constexpr float exponent_scale = score_scale * 1.4426950408889634F;  // to base 2
constexpr float infinity = __builtin_huge_valf();
constexpr unsigned all_lanes = 0xFFFFFFFFU;

// The same for all threads of a warp, and the compiler is told so: products must not stand where threads may part.
__device__ int uniform(int x) { return __shfl_sync(all_lanes, x, 0); }

// One row of a batch and one head of it, and the positions that this thread's warpgroup owns.
template <int Groups>
struct Place {
  int row, head, group, warp, lane;
  int positions, heads, length;
  int first_of_block, first;
  int working;  // warpgroups of the block that own a valid position

  __device__ explicit Place(const Attention& p)
      : row(blockIdx.z),
        head(blockIdx.x),
        group(uniform(threadIdx.x / group_width)),
        warp(threadIdx.x / 32 % 4),
        lane(threadIdx.x % 32),
        positions(static_cast<int>(p.positions)),
        heads(static_cast<int>(p.heads)),
        length(uniform(min(p.lengths[row], positions))),
        first_of_block(blockIdx.y * Groups * group_rows),
        first(first_of_block + group * group_rows),
        working(min(Groups, max(0, (length - first_of_block + group_rows - 1) / group_rows))) {}

  __device__ bool works() const { return group < working; }
  __device__ int tiles() const { return (length + tile - 1) / tile; }

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
struct alignas(1024) Ring {
  struct {
    uint8_t tiles[2][tile * tile_row_bytes];
  } stage[stages];
  float vectors[stages][2][tile];  // a number a row of each tile, where it is wanted
  Barrier full[stages], free[stages], own_here;

  // By all threads of the block.
  template <int Groups>
  __device__ void begin(const Place<Groups>& place) {
    if (threadIdx.x == 0) {
      for (int i = 0; i < stages; ++i) {
        full[i].begin(1);
        free[i].begin(place.working * 4);
      }
      own_here.begin(1);
      publish_barriers();
    }
    __syncthreads();
  }

  // By one thread, once what lay there is no longer needed.
  template <int Groups>
  __device__ Barrier& fetch(int number, const CUtensorMap& first, int first_part, const CUtensorMap& second,
                            int second_part, uint32_t more_bytes, const Place<Groups>& place) {
    const int slot = number % stages;
    if (number >= stages) free[slot].wait((number / stages - 1) % 2);
    full[slot].arrive_expecting(2 * tile * tile_row_bytes + more_bytes);
    copy_tile(stage[slot].tiles[0], first, first_part, number * tile, place.row, full[slot]);
    copy_tile(stage[slot].tiles[1], second, second_part, number * tile, place.row, full[slot]);
    return full[slot];
  }

  __device__ void wait_for(int number) { full[number % stages].wait(number / stages % 2); }

  // By all threads of a warp: it will not read this pair again.
  __device__ void give_back(int number, int lane) {
    __syncwarp();
    if (lane == 0) free[number % stages].arrive();
  }

  __device__ uint64_t descriptor(int number, int which) const {
    return tile_descriptor(stage[number % stages].tiles[which]);
  }
};

// Two tiles of each warpgroup's own rows.
template <int Groups>
struct OwnTiles {
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

template <int Groups>
struct alignas(1024) RingAndOwn {
  Ring ring;
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
__device__ float2 shared_pair(const float* from) {
  float2 two;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(two.x), "=f"(two.y) : "r"(shared_address(from)));
  return two;
}

__device__ uint32_t pack(float low, float high) {
  const __nv_bfloat162 two = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const uint32_t&>(two);
}

__device__ float2 unpack(uint32_t bits) { return __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(bits)); }

__device__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// A row of a product lies with four neighbouring lanes.
__device__ float row_sum(float x) {
  x += __shfl_xor_sync(all_lanes, x, 1);
  return x + __shfl_xor_sync(all_lanes, x, 2);
}

__device__ float row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(all_lanes, x, 1));
  return fmaxf(x, __shfl_xor_sync(all_lanes, x, 2));
}

__device__ float dot_of_16(const Brain* a, const Brain* b) {
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

// The warpgroup's own rows; zeros behind the last position.
template <int Groups>
__device__ void load(Left& to, const Brain* from, int64_t stride, const Place<Groups>& place) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int position = place.own_row(half);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const Brain* two = from + position * stride + place.own_column(i);
      to[i / 2][i % 2 * 2 + half] = position < place.positions ? *reinterpret_cast<const uint32_t*>(two) : 0;
    }
  }
}

__device__ void to_left(Left& to, const Sums& from) {
#pragma unroll
  for (int i = 0; i < 16; ++i) to[i / 4][i % 4] = pack(from[2 * i], from[2 * i + 1]);
}

// sum = left x (rows of the tile)^T
__device__ void times_rows(Sums& sum, const Left& left, uint64_t rows) {
#pragma unroll
  for (int i = 0; i < 4; ++i) multiply_by_rows(sum, left[i], rows + i * next_16_columns, i > 0);
}

__device__ void times_rows(Sums& sum, uint64_t left, uint64_t rows) {
#pragma unroll
  for (int i = 0; i < 4; ++i) multiply_by_rows(sum, left + i * next_16_columns, rows + i * next_16_columns, i > 0);
}

// sum += left x tile
__device__ void add_times(Sums& sum, const Left& left, uint64_t rows) {
#pragma unroll
  for (int i = 0; i < 4; ++i) multiply(sum, left[i], rows + i * next_16_rows, 1);
}

// The warpgroup's own rows, times a factor each.
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
          pack(from[4 * i + 2 * half] * factor[half], from[4 * i + 2 * half + 1] * factor[half]);
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

constexpr int query_groups = 2;  // warpgroups of a block; two blocks fit beside each other
constexpr int key_groups = 3;    // these need more registers: one block

__global__ void __launch_bounds__(query_groups* group_width, 2)
    attend(const __grid_constant__ CUtensorMap values, const Attention p) {
  const Place<query_groups> place(p);
  Ring& ring = shared_memory<Ring>();
  ring.begin(place);
  const int tiles = place.tiles();
  const auto fetch = [&](int number) {
    if (threadIdx.x != 0 || number >= tiles) return;
    ring.fetch(number, values, place.heads + place.head, values, 2 * place.heads + place.head, 0, place);
  };
  const int64_t width = p.heads * head_width;
  Sums seen = {};
  float shift[2] = {-infinity, -infinity}, sum[2] = {};  // weights are 2^(score - shift); their sum
  if (place.works()) {
    for (int i = 0; i < ahead; ++i) fetch(i);
    Left query, weight;
    load(query, p.values + place.in_values(3), 3 * width, place);
    Sums score;
    const auto weigh = [&](int number) {
      if ((number + 1) * tile > place.length) {
#pragma unroll
        for (int i = 0; i < 32; ++i) {
          if (number * tile + place.own_column(i / 4) + i % 2 >= place.length) score[i] = -infinity;
        }
      }
      float high[2][2];
#pragma unroll
      for (int i = 0; i < 4; ++i) high[i / 2][i % 2] = score[i];
#pragma unroll
      for (int i = 4; i < 32; ++i) high[i / 2 % 2][i % 2] = fmaxf(high[i / 2 % 2][i % 2], score[i]);
      const float largest[2] = {row_max(fmaxf(high[0][0], high[0][1])) * exponent_scale,
                                row_max(fmaxf(high[1][0], high[1][1])) * exponent_scale};
      // The shift need not be the largest score: somewhat less only changes the factor that all weights share.
      constexpr float somewhat = 8;
      if (__any_sync(all_lanes, largest[0] > shift[0] + somewhat || largest[1] > shift[1] + somewhat)) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float next = fmaxf(shift[half], largest[half]), shrink = power_of_two(shift[half] - next);
          shift[half] = next;
          sum[half] *= shrink;
#pragma unroll
          for (int i = 0; i < 16; ++i) seen[i / 2 * 4 + half * 2 + i % 2] *= shrink;
        }
      }
      float total[2][2] = {};
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        score[i] = power_of_two(score[i] * exponent_scale - shift[i / 2 % 2]);
        total[i / 2 % 2][i % 2] += score[i];
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) sum[half] += total[half][0] + total[half][1];
      to_left(weight, score);
    };
    ring.wait_for(0);
    begin_products(score, seen);
    times_rows(score, query, ring.descriptor(0, 0));
    end_products();
    for (int i = 0; i + 1 < tiles; ++i) {
      fetch(i + ahead);
      wait_for_products(score, seen);
      if (i > 0) ring.give_back(i - 1, place.lane);
      weigh(i);
      ring.wait_for(i + 1);
      begin_products(score, seen);
      add_times(seen, weight, ring.descriptor(i, 1));
      times_rows(score, query, ring.descriptor(i + 1, 0));
      end_products();
    }
    wait_for_products(score, seen);
    weigh(tiles - 1);
    begin_products(seen);
    add_times(seen, weight, ring.descriptor(tiles - 1, 1));
    end_products();
    wait_for_products(seen);
  }
  float factor[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int position = place.own_row(half);
    const bool valid = position < place.length;
    const float total = row_sum(sum[half]);
    factor[half] = valid ? 1 / total : 0;
    if (place.lane % 4 == 0 && position < place.places()) {
      // Infinite behind the valid ones: they weigh nothing on the way back.
      p.log_sums[place.in_vectors() + position] = valid ? shift[half] + __log2f(total) : infinity;
    }
  }
  store(p.seen + place.in_values(1), width, seen, factor, place);
}

// The gradient of the queries. Leaves the products of seen and d_seen for that of keys and values.
__global__ void __launch_bounds__(query_groups* group_width, 2)
    attend_back_to_queries(const __grid_constant__ CUtensorMap values, const __grid_constant__ CUtensorMap d_seen,
                           const AttentionBackward b) {
  const Attention& p = b.forward;
  const Place<query_groups> place(p);
  auto& [ring, own] = shared_memory<RingAndOwn<query_groups>>();
  ring.begin(place);
  const int tiles = place.tiles();
  const auto fetch = [&](int number) {
    if (threadIdx.x != 0 || number >= tiles) return;
    ring.fetch(number, values, place.heads + place.head, values, 2 * place.heads + place.head, 0, place);
  };
  const int64_t width = p.heads * head_width;
  Sums d_query = {};
  if (place.works()) {
    if (threadIdx.x == 0) own.fetch(values, place.head, d_seen, place.head, ring.own_here, place);
    for (int i = 0; i < ahead; ++i) fetch(i);
    float log_sum[2], product[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      // The four lanes of a row take a quarter of it each.
      const int64_t quarter =
          place.in_values(1) + min(place.own_row(half), place.positions - 1) * width + place.lane % 4 * 16;
      product[half] = row_sum(dot_of_16(p.seen + quarter, b.d_seen + quarter));
      const int64_t at = place.in_vectors() + place.own_row(half);
      log_sum[half] = p.log_sums[at];
      if (place.lane % 4 == 0) b.products[at] = product[half];
    }
    const uint64_t query = tile_descriptor(own.tiles[place.group][0]);
    const uint64_t own_d_seen = tile_descriptor(own.tiles[place.group][1]);
    Sums score, d_weight;
    Left d_score;
    ring.own_here.wait(0);
    for (int i = 0; i < tiles; ++i) {
      fetch(i + ahead);
      ring.wait_for(i);
      begin_products(score, d_weight);
      times_rows(score, query, ring.descriptor(i, 0));
      times_rows(d_weight, own_d_seen, ring.descriptor(i, 1));
      end_products();
      wait_for_products(score, d_weight);
      const bool last = (i + 1) * tile > place.length;
#pragma unroll
      for (int k = 0; k < 32; ++k) {
        const int half = k / 2 % 2;
        float weight = power_of_two(score[k] * exponent_scale - log_sum[half]);
        if (last && i * tile + place.own_column(k / 4) + k % 2 >= place.length) weight = 0;
        d_weight[k] = weight * (d_weight[k] - product[half]);
      }
      to_left(d_score, d_weight);
      begin_products(d_query);
      add_times(d_query, d_score, ring.descriptor(i, 0));
      end_products();
      wait_for_products(d_query);
      ring.give_back(i, place.lane);
    }
  }
  turn_back(d_query, b, place);
  const float factor[2] = {score_scale, score_scale};
  store(b.d_values + place.in_values(3), 3 * width, d_query, factor, place);
}

__global__ void __launch_bounds__(key_groups* group_width, 1)
    attend_back_to_keys(const __grid_constant__ CUtensorMap values, const __grid_constant__ CUtensorMap d_seen,
                        const AttentionBackward b) {
  const Attention& p = b.forward;
  const Place<key_groups> place(p);
  auto& [ring, own] = shared_memory<RingAndOwn<key_groups>>();
  ring.begin(place);
  const int tiles = place.tiles();
  const auto fetch = [&](int number) {
    if (threadIdx.x != 0 || number >= tiles) return;
    constexpr uint32_t bytes = tile * sizeof(float);
    Barrier& full = ring.fetch(number, values, place.head, d_seen, place.head, 2 * bytes, place);
    const int64_t at = place.in_vectors() + number * tile;
    copy_bytes(ring.vectors[number % stages][0], p.log_sums + at, bytes, full);
    copy_bytes(ring.vectors[number % stages][1], b.products + at, bytes, full);
  };
  Sums d_key = {}, d_value = {};
  if (place.works()) {
    if (threadIdx.x == 0) {
      own.fetch(values, place.heads + place.head, values, 2 * place.heads + place.head, ring.own_here, place);
    }
    for (int i = 0; i < ahead; ++i) fetch(i);
    const uint64_t key = tile_descriptor(own.tiles[place.group][0]);
    const uint64_t value = tile_descriptor(own.tiles[place.group][1]);
    Sums score, d_weight;  // keys down, queries across
    Left weight, d_score;
    ring.own_here.wait(0);
    for (int i = 0; i < tiles; ++i) {
      fetch(i + ahead);
      ring.wait_for(i);
      begin_products(score, d_weight);
      times_rows(score, key, ring.descriptor(i, 0));
      times_rows(d_weight, value, ring.descriptor(i, 1));
      end_products();
      wait_for_products(score, d_weight);
#pragma unroll
      for (int column = 0; column < 8; ++column) {
        const float2 log_sum = shared_pair(ring.vectors[i % stages][0] + place.own_column(column));
        const float2 product = shared_pair(ring.vectors[i % stages][1] + place.own_column(column));
#pragma unroll
        for (int k = 4 * column; k < 4 * column + 4; ++k) {
          score[k] = power_of_two(score[k] * exponent_scale - (k % 2 == 0 ? log_sum.x : log_sum.y));
          d_weight[k] = score[k] * (d_weight[k] - (k % 2 == 0 ? product.x : product.y));
        }
      }
      to_left(weight, score);
      to_left(d_score, d_weight);
      begin_products(d_key, d_value);
      add_times(d_value, weight, ring.descriptor(i, 1));
      add_times(d_key, d_score, ring.descriptor(i, 0));
      end_products();
      wait_for_products(d_key, d_value);
      ring.give_back(i, place.lane);
    }
  }
  turn_back(d_key, b, place);
  float key_factor[2], value_factor[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const bool valid = place.own_row(half) < place.length;
    key_factor[half] = valid ? score_scale : 0;
    value_factor[half] = valid ? 1 : 0;
  }
  const int64_t width = p.heads * head_width;
  Brain* to = b.d_values + place.in_values(3);
  store(to + width, 3 * width, d_key, key_factor, place);
  store(to + 2 * width, 3 * width, d_value, value_factor, place);
}

template <int Groups, typename Memory, typename... Arguments>
cudaError_t launch(void (*kernel)(Arguments...), const Attention& p, cudaStream_t stream,
                   const Arguments&... arguments) {
  constexpr int rows = Groups * group_rows, bytes = bytes_of<Memory>;
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return error;
  // One row of the batch after the other: its keys and values stay in the cache.
  const dim3 blocks(static_cast<unsigned>(p.heads), static_cast<unsigned>((p.positions + rows - 1) / rows),
                    static_cast<unsigned>(p.rows));
  kernel<<<blocks, Groups * group_width, bytes, stream>>>(arguments...);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_attention(const CUtensorMap& values, const Attention& p, cudaStream_t stream) {
  return launch<query_groups, Ring>(attend, p, stream, values, p);
}

cudaError_t launch_attention_backward(const CUtensorMap& values, const CUtensorMap& d_seen, const AttentionBackward& b,
                                      cudaStream_t stream) {
  const cudaError_t error = launch<query_groups, RingAndOwn<query_groups>>(attend_back_to_queries, b.forward, stream,
                                                                           values, d_seen, b);
  if (error != cudaSuccess) return error;
  return launch<key_groups, RingAndOwn<key_groups>>(attend_back_to_keys, b.forward, stream, values, d_seen, b);
}

}  // namespace myxtts
