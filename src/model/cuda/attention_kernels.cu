// A warpgroup owns 64 queries (or, for the gradients of keys and values, 64 keys) and walks over the tiles of the other
// side, which one thread of the block fetches ahead for all its warpgroups. While the products of one warpgroup run,
// the others work on their softmax.
//
// Names: a score is a query times a key; a weight is what the softmax makes of it.
#include "model/cuda/attention_kernels.h"
#include "model/cuda/attention_parts.cuh"

#include <algorithm>

#include <cuda_runtime.h>

namespace myxtts {
namespace {

using namespace attention;

constexpr int query_groups = 2;  // warpgroups of a block; two blocks fit beside each other
constexpr int key_groups = 1;    // these need more registers: three blocks of one

// Forward gives a tile back a turn later; warpgroups that share tiles may be one apart; three blocks have no room for
// more.
using SeenMemory = Ring<ahead + 2>;
using QueryMemory = RingAndOwn<query_groups, ahead + 2>;
using KeyMemory = RingAndOwn<key_groups, ahead + 1>;

__global__ void __launch_bounds__(query_groups* group_width, 2)
    attend(const __grid_constant__ CUtensorMap values, const Attention p) {
  const Place<query_groups> place(p);
  auto& ring = shared_memory<SeenMemory>();
  ring.begin(place);
  const int tiles = place.tiles();
  const int64_t width = p.heads * head_width;
  Sums seen = {};
  float shift[2] = {-infinity, -infinity}, sum[2] = {};  // weights are 2^(score - shift); their sum
  if (place.works()) {
    for (int i = 0; i < ahead; ++i) ring.fetch_keys_and_values(i, values, place);
    Left query, weight;
    load(query, p.values + place.in_values(3), 3 * width, place);
    Sums score;
    const auto weigh = [&](int number) {
      hide_padding(score, number, place);
      float total[2];
      const auto weigh_by_shift = [&] {
        float part[2][2] = {};
#pragma unroll
        for (int i = 0; i < 16; ++i) {
          const float low = power_of_two(score[2 * i] * exponent_scale - shift[i % 2]);
          const float high = power_of_two(score[2 * i + 1] * exponent_scale - shift[i % 2]);
          part[i % 2][0] += low, part[i % 2][1] += high;
          weight[i / 4][i % 4] = pack(low, high);
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) total[half] = part[half][0] + part[half][1];
      };
      weigh_by_shift();
      // Any shift will do that keeps the weights in range: it only changes the factor that they share. So the largest
      // score is looked for where they are not, which is at the first tile and hardly ever again.
      constexpr float too_large = 65536;
      if (__any_sync(all_lanes, !(total[0] + total[1] < too_large))) {
        float largest[2] = {score[0], score[2]};
#pragma unroll
        for (int i = 0; i < 32; ++i) largest[i / 2 % 2] = fmaxf(largest[i / 2 % 2], score[i]);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float next = fmaxf(shift[half], row_max(largest[half]) * exponent_scale);
          const float shrink = power_of_two(shift[half] - next);
          shift[half] = next;
          sum[half] *= shrink;
#pragma unroll
          for (int i = 0; i < 16; ++i) seen[i / 2 * 4 + half * 2 + i % 2] *= shrink;
        }
        weigh_by_shift();
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) sum[half] += total[half];
    };
    ring.wait_for(0);
    begin_products(score, seen);
    times_rows(score, query, ring.descriptor(0, 0));
    end_products();
    for (int i = 0; i + 1 < tiles; ++i) {
      ring.fetch_keys_and_values(i + ahead, values, place);
      wait_for_products<0>(score, seen);
      if (i > 0) ring.give_back(i - 1, place.lane);
      weigh(i);
      ring.wait_for(i + 1);
      begin_products(score, seen);
      add_times(seen, weight, ring.descriptor(i, 1));
      times_rows(score, query, ring.descriptor(i + 1, 0));
      end_products();
    }
    wait_for_products<0>(score, seen);
    weigh(tiles - 1);
    begin_products(seen);
    add_times(seen, weight, ring.descriptor(tiles - 1, 1));
    end_products();
    wait_for_products<0>(seen);
  }
  float factor[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int position = place.own_row(half);
    const bool valid = position < place.length;
    const float total = row_sum(sum[half]);
    factor[half] = valid ? 1 / total : 0;
    if (place.lane % 4 == 0 && position < place.places()) {
      p.offsets[place.in_vectors() + position] =
          valid ? (shift[half] + __log2f(total)) * (-1 / exponent_scale) : -infinity;
    }
  }
  store(p.seen + place.in_values(1), width, seen, factor, place);
}

// The gradient of the queries. Leaves d_offsets for that of keys and values.
__global__ void __launch_bounds__(query_groups* group_width, 2)
    attend_back_to_queries(const __grid_constant__ CUtensorMap values, const __grid_constant__ CUtensorMap d_seen,
                           const AttentionBackward b) {
  const Attention& p = b.forward;
  const Place<query_groups> place(p);
  auto& [ring, own] = shared_memory<QueryMemory>();
  ring.begin(place);
  const int tiles = place.tiles();
  const int64_t width = p.heads * head_width;
  Sums d_query = {};
  if (place.works()) {
    if (threadIdx.x == 0) own.fetch(values, place.head, d_seen, place.head, ring.own_here, place);
    for (int i = 0; i < ahead; ++i) ring.fetch_keys_and_values(i, values, place);
    float offset[2], d_offset[2];  // the first times the scores' scale
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      // The four lanes of a row take a quarter of it each.
      const int64_t quarter =
          place.in_values(1) + min(place.own_row(half), place.positions - 1) * width + place.lane % 4 * 16;
      d_offset[half] = -row_sum(dot_of_16(p.seen + quarter, b.d_seen + quarter));
      const int64_t at = place.in_vectors() + place.own_row(half);
      offset[half] = p.offsets[at] * exponent_scale;
      if (place.lane % 4 == 0) b.d_offsets[at] = d_offset[half];
    }
    const uint64_t query = tile_descriptor(own.tiles[place.group][0]);
    const uint64_t own_d_seen = tile_descriptor(own.tiles[place.group][1]);
    Sums score, d_weight;
    Left d_score;
    ring.own_here.wait(0);
    for (int i = 0; i < tiles; ++i) {
      ring.wait_for(i);
      begin_products(score, d_weight);
      times_rows(score, query, ring.descriptor(i, 0));
      end_products();
      times_rows(d_weight, own_d_seen, ring.descriptor(i, 1));
      end_products();
      ring.fetch_keys_and_values(i + ahead, values, place);
      wait_for_products<1>(score);
      hide_padding(score, i, place);
#pragma unroll
      for (int k = 0; k < 32; ++k) score[k] = power_of_two(score[k] * exponent_scale + offset[k / 2 % 2]);
      wait_for_products<0>(d_weight);
#pragma unroll
      for (int k = 0; k < 32; ++k) d_weight[k] = score[k] * (d_weight[k] + d_offset[k / 2 % 2]);
      to_left(d_score, d_weight);
      begin_products(d_query);
      add_times(d_query, d_score, ring.descriptor(i, 0));
      end_products();
      wait_for_products<0>(d_query);
      ring.give_back(i, place.lane);
    }
  }
  turn_back(d_query, b, place);
  float factor[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) factor[half] = place.own_row(half) < place.length ? score_scale : 0;
  store(b.d_values + place.in_values(3), 3 * width, d_query, factor, place);
}

__global__ void __launch_bounds__(key_groups* group_width, 3)
    attend_back_to_keys(const __grid_constant__ CUtensorMap values, const __grid_constant__ CUtensorMap d_seen,
                        const AttentionBackward b) {
  const Attention& p = b.forward;
  const Place<key_groups> place(p);
  auto& [ring, own] = shared_memory<KeyMemory>();
  ring.begin(place);
  const int tiles = place.tiles();
  const auto fetch = [&](int number) {
    if (!place.fetches(number)) return;
    constexpr uint32_t bytes = tile * sizeof(float);
    Barrier& full = ring.fetch(number, values, place.head, d_seen, place.head, 2 * bytes, place);
    const int64_t at = place.in_vectors() + number * tile;
    copy_bytes(ring.vector(number, 0), p.offsets + at, bytes, full);
    copy_bytes(ring.vector(number, 1), b.d_offsets + at, bytes, full);
  };
  Sums d_key = {}, d_value = {};
  if (place.works()) {
    if (threadIdx.x == 0) {
      own.fetch(values, place.key_part(), values, place.value_part(), ring.own_here, place);
    }
    for (int i = 0; i < ahead; ++i) fetch(i);
    const uint64_t key = tile_descriptor(own.tiles[place.group][0]);
    const uint64_t value = tile_descriptor(own.tiles[place.group][1]);
    // Keys down, queries across. Both begin with the offsets of their queries, the scores while the products of the
    // tile before still run.
    Sums score, d_weight;
    Left weight, d_score;
    ring.own_here.wait(0);
    ring.wait_for(0);
    begin_columns(score, ring.vector(0, 0), place);
    for (int i = 0; i < tiles; ++i) {
      begin_columns(d_weight, ring.vector(i, 1), place);
      begin_products(score, d_weight);
      add_times_rows(score, key, ring.descriptor(i, 0));
      end_products();
      add_times_rows(d_weight, value, ring.descriptor(i, 1));
      end_products();
      fetch(i + ahead);
      wait_for_products<1>(score);
#pragma unroll
      for (int k = 0; k < 32; ++k) score[k] = power_of_two(score[k] * exponent_scale);
      wait_for_products<0>(d_weight);
#pragma unroll
      for (int k = 0; k < 32; ++k) d_weight[k] *= score[k];
      to_left(weight, score);
      to_left(d_score, d_weight);
      begin_products(d_key, d_value);
      add_times(d_value, weight, ring.descriptor(i, 1));
      add_times(d_key, d_score, ring.descriptor(i, 0));
      end_products();
      if (i + 1 < tiles) {
        ring.wait_for(i + 1);
        begin_columns(score, ring.vector(i + 1, 0), place);
      }
      wait_for_products<0>(d_key, d_value);
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

// Rows of the batch that are worked on side by side, a whole number of times: as many as the cache holds the tiles of.
// Their last blocks, which have the least to do, then come last and fill what would be left over.
int64_t rows_together(const Attention& p) {
  constexpr int64_t cached = 28 << 20;
  constexpr int64_t most = 65535;  // that a grid has
  int64_t rows = std::clamp<int64_t>(cached / (p.positions * p.heads * 2 * tile_row_bytes), 1, std::min(p.rows, most));
  while (p.rows % rows != 0) --rows;
  return rows;
}

template <int Groups, typename Memory, typename... Arguments>
cudaError_t launch(void (*kernel)(Arguments...), const Attention& p, cudaStream_t stream,
                   const Arguments&... arguments) {
  constexpr int bytes = bytes_of<Memory>;
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return error;
  const int64_t rows = rows_together(p);
  const dim3 blocks(static_cast<unsigned>(p.heads), static_cast<unsigned>(rows),
                    static_cast<unsigned>(p.rows / rows * Place<Groups>::blocks_of_row(p)));
  kernel<<<blocks, Groups * group_width, bytes, stream>>>(arguments...);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_attention(const CUtensorMap& values, const Attention& p, cudaStream_t stream) {
  return launch<query_groups, SeenMemory>(attend, p, stream, values, p);
}

cudaError_t launch_attention_backward(const CUtensorMap& values, const CUtensorMap& d_seen, const AttentionBackward& b,
                                      cudaStream_t stream) {
  const cudaError_t error =
      launch<query_groups, QueryMemory>(attend_back_to_queries, b.forward, stream, values, d_seen, b);
  if (error != cudaSuccess) return error;
  return launch<key_groups, KeyMemory>(attend_back_to_keys, b.forward, stream, values, d_seen, b);
}

}  // namespace myxtts
