// A warpgroup owns 64 queries (64 keys in the backward of keys and values) and iterates over tiles of the other side,
// which one thread of the block prefetches for all warpgroups. Softmax of one warpgroup overlaps the products of
// others.
//
// A score is the dot product of query and key; a weight is its softmax.
#include "model/cuda/attention_kernels.h"
#include "model/cuda/attention_parts.cuh"

#include <algorithm>

#include <cuda_runtime.h>

namespace myxtts {
namespace {

using namespace attention;

constexpr int query_groups = 2;  // warpgroups per block; two blocks per SM
constexpr int key_groups = 1;    // needs more registers: three blocks of one warpgroup per SM

// Stages: forward releases a tile one iteration late, query warpgroups may be one tile apart, and three blocks of the
// key kernel leave no room for more.
using ForwardMemory = Ring<prefetch_tiles + 2>;
using QueryMemory = RingAndOwn<query_groups, prefetch_tiles + 2>;
using KeyMemory = RingAndOwn<key_groups, prefetch_tiles + 1>;

__global__ void __launch_bounds__(query_groups* warpgroup_threads, 2)
    attention_forward(const __grid_constant__ CUtensorMap qkv, const Attention p) {
  const TileCoords<query_groups> coords(p);
  auto& ring = shared_memory<ForwardMemory>();
  ring.init(coords);
  const int tiles = coords.tiles();
  const int64_t width = p.heads * head_width;
  Accumulator output = {};
  float shift[2] = {-infinity, -infinity}, sum[2] = {};  // online softmax: weights are 2^(score - shift)
  if (coords.is_active()) {
    for (int i = 0; i < prefetch_tiles; ++i) ring.fetch_keys_and_values(i, qkv, coords);
    LeftOperand query, weight;
    load(query, p.qkv + coords.base_offset(3), 3 * width, coords);
    Accumulator score;
    const auto softmax_tile = [&](int number) {
      mask_padding(score, number, coords);
      float total[2];
      const auto exponentiate = [&] {
        float part[2][2] = {};
#pragma unroll
        for (int i = 0; i < 16; ++i) {
          const float low = fast_exp2(score[2 * i] * exponent_scale - shift[i % 2]);
          const float high = fast_exp2(score[2 * i + 1] * exponent_scale - shift[i % 2]);
          part[i % 2][0] += low, part[i % 2][1] += high;
          weight[i / 4][i % 4] = pack(low, high);
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) total[half] = part[half][0] + part[half][1];
      };
      exponentiate();
      // Any shift that keeps the weights in range gives the same softmax. Update it only if they overflow, which
      // happens at the first tile and rarely later.
      constexpr float too_large = 65536;
      if (__any_sync(all_lanes, !(total[0] + total[1] < too_large))) {
        float largest[2] = {score[0], score[2]};
#pragma unroll
        for (int i = 0; i < 32; ++i) largest[i / 2 % 2] = fmaxf(largest[i / 2 % 2], score[i]);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float next = fmaxf(shift[half], row_max(largest[half]) * exponent_scale);
          const float shrink = fast_exp2(shift[half] - next);
          shift[half] = next;
          sum[half] *= shrink;
#pragma unroll
          for (int i = 0; i < 16; ++i) output[i / 2 * 4 + half * 2 + i % 2] *= shrink;
        }
        exponentiate();
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) sum[half] += total[half];
    };
    ring.wait_for(0);
    wgmma_fence(score, output);
    matmul_transposed(score, query, ring.descriptor(0, 0));
    wgmma_commit();
    for (int i = 0; i + 1 < tiles; ++i) {
      ring.fetch_keys_and_values(i + prefetch_tiles, qkv, coords);
      wgmma_wait<0>(score, output);
      if (i > 0) ring.release(i - 1, coords.lane);
      softmax_tile(i);
      ring.wait_for(i + 1);
      wgmma_fence(score, output);
      matmul_add(output, weight, ring.descriptor(i, 1));
      matmul_transposed(score, query, ring.descriptor(i + 1, 0));
      wgmma_commit();
    }
    wgmma_wait<0>(score, output);
    softmax_tile(tiles - 1);
    wgmma_fence(output);
    matmul_add(output, weight, ring.descriptor(tiles - 1, 1));
    wgmma_commit();
    wgmma_wait<0>(output);
  }
  float factor[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int position = coords.own_row(half);
    const bool valid = position < coords.length;
    const float total = row_sum(sum[half]);
    factor[half] = valid ? 1 / total : 0;
    if (coords.lane % 4 == 0 && position < coords.padded_positions()) {
      p.neg_lse[coords.vector_offset() + position] =
          valid ? (shift[half] + __log2f(total)) * (-1 / exponent_scale) : -infinity;
    }
  }
  store(p.output + coords.base_offset(1), width, output, factor, coords);
}

// Gradient of the queries. Also writes neg_delta for the gradient of keys and values.
__global__ void __launch_bounds__(query_groups* warpgroup_threads, 2)
    attention_backward_queries(const __grid_constant__ CUtensorMap qkv, const __grid_constant__ CUtensorMap d_output,
                               const AttentionBackward b) {
  const Attention& p = b.forward;
  const TileCoords<query_groups> coords(p);
  auto& [ring, own] = shared_memory<QueryMemory>();
  ring.init(coords);
  const int tiles = coords.tiles();
  const int64_t width = p.heads * head_width;
  Accumulator d_query = {};
  if (coords.is_active()) {
    if (threadIdx.x == 0) own.fetch(qkv, coords.head, d_output, coords.head, ring.own_full, coords);
    for (int i = 0; i < prefetch_tiles; ++i) ring.fetch_keys_and_values(i, qkv, coords);
    float neg_lse[2], neg_delta[2];  // neg_lse in units of base-2 exponents
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      // Four lanes share a row.
      const int64_t quarter =
          coords.base_offset(1) + min(coords.own_row(half), coords.positions - 1) * width + coords.lane % 4 * 16;
      neg_delta[half] = -row_sum(dot_of_16(p.output + quarter, b.d_output + quarter));
      const int64_t at = coords.vector_offset() + coords.own_row(half);
      neg_lse[half] = p.neg_lse[at] * exponent_scale;
      if (coords.lane % 4 == 0) b.neg_delta[at] = neg_delta[half];
    }
    const uint64_t query = tile_descriptor(own.tiles[coords.group][0]);
    const uint64_t own_d_seen = tile_descriptor(own.tiles[coords.group][1]);
    Accumulator score, d_weight;
    LeftOperand d_score;
    ring.own_full.wait(0);
    for (int i = 0; i < tiles; ++i) {
      ring.wait_for(i);
      wgmma_fence(score, d_weight);
      matmul_transposed(score, query, ring.descriptor(i, 0));
      wgmma_commit();
      matmul_transposed(d_weight, own_d_seen, ring.descriptor(i, 1));
      wgmma_commit();
      ring.fetch_keys_and_values(i + prefetch_tiles, qkv, coords);
      wgmma_wait<1>(score);
      mask_padding(score, i, coords);
#pragma unroll
      for (int k = 0; k < 32; ++k) score[k] = fast_exp2(score[k] * exponent_scale + neg_lse[k / 2 % 2]);
      wgmma_wait<0>(d_weight);
#pragma unroll
      for (int k = 0; k < 32; ++k) d_weight[k] = score[k] * (d_weight[k] + neg_delta[k / 2 % 2]);
      to_left_operand(d_score, d_weight);
      wgmma_fence(d_query);
      matmul_add(d_query, d_score, ring.descriptor(i, 0));
      wgmma_commit();
      wgmma_wait<0>(d_query);
      ring.release(i, coords.lane);
    }
  }
  rotary_backward(d_query, b, coords);
  float factor[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) factor[half] = coords.own_row(half) < coords.length ? score_scale : 0;
  store(b.d_qkv + coords.base_offset(3), 3 * width, d_query, factor, coords);
}

__global__ void __launch_bounds__(key_groups* warpgroup_threads, 3)
    attention_backward_keys(const __grid_constant__ CUtensorMap qkv, const __grid_constant__ CUtensorMap d_output,
                            const AttentionBackward b) {
  const Attention& p = b.forward;
  const TileCoords<key_groups> coords(p);
  auto& [ring, own] = shared_memory<KeyMemory>();
  ring.init(coords);
  const int tiles = coords.tiles();
  const auto fetch = [&](int number) {
    if (!coords.fetches(number)) return;
    constexpr uint32_t bytes = tile * sizeof(float);
    Barrier& full = ring.fetch(number, qkv, coords.head, d_output, coords.head, 2 * bytes, coords);
    const int64_t at = coords.vector_offset() + number * tile;
    copy_bytes(ring.vector(number, 0), p.neg_lse + at, bytes, full);
    copy_bytes(ring.vector(number, 1), b.neg_delta + at, bytes, full);
  };
  Accumulator d_key = {}, d_value = {};
  if (coords.is_active()) {
    if (threadIdx.x == 0) {
      own.fetch(qkv, coords.key_part(), qkv, coords.value_part(), ring.own_full, coords);
    }
    for (int i = 0; i < prefetch_tiles; ++i) fetch(i);
    const uint64_t key = tile_descriptor(own.tiles[coords.group][0]);
    const uint64_t value = tile_descriptor(own.tiles[coords.group][1]);
    // Transposed: keys are rows, queries are columns. Accumulators start at neg_lse and neg_delta; scores are
    // initialised while the products of the previous tile still run.
    Accumulator score, d_weight;
    LeftOperand weight, d_score;
    ring.own_full.wait(0);
    ring.wait_for(0);
    broadcast_columns(score, ring.vector(0, 0), coords);
    for (int i = 0; i < tiles; ++i) {
      broadcast_columns(d_weight, ring.vector(i, 1), coords);
      wgmma_fence(score, d_weight);
      matmul_transposed_add(score, key, ring.descriptor(i, 0));
      wgmma_commit();
      matmul_transposed_add(d_weight, value, ring.descriptor(i, 1));
      wgmma_commit();
      fetch(i + prefetch_tiles);
      wgmma_wait<1>(score);
#pragma unroll
      for (int k = 0; k < 32; ++k) score[k] = fast_exp2(score[k] * exponent_scale);
      wgmma_wait<0>(d_weight);
#pragma unroll
      for (int k = 0; k < 32; ++k) d_weight[k] *= score[k];
      to_left_operand(weight, score);
      to_left_operand(d_score, d_weight);
      wgmma_fence(d_key, d_value);
      matmul_add(d_value, weight, ring.descriptor(i, 1));
      matmul_add(d_key, d_score, ring.descriptor(i, 0));
      wgmma_commit();
      if (i + 1 < tiles) {
        ring.wait_for(i + 1);
        broadcast_columns(score, ring.vector(i + 1, 0), coords);
      }
      wgmma_wait<0>(d_key, d_value);
      ring.release(i, coords.lane);
    }
  }
  rotary_backward(d_key, b, coords);
  float key_factor[2], value_factor[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const bool valid = coords.own_row(half) < coords.length;
    key_factor[half] = valid ? score_scale : 0;
    value_factor[half] = valid ? 1 : 0;
  }
  const int64_t width = p.heads * head_width;
  BFloat16* to = b.d_qkv + coords.base_offset(3);
  store(to + width, 3 * width, d_key, key_factor, coords);
  store(to + 2 * width, 3 * width, d_value, value_factor, coords);
}

// Rows of the batch per grid slice, a divisor of all rows: as many as have their tiles in L2. Blocks of the shortest
// work are then launched last and fill the tail.
int64_t concurrent_rows(const Attention& p) {
  constexpr int64_t cache_bytes = 28 << 20;
  constexpr int64_t max_grid = 65535;
  int64_t rows =
      std::clamp<int64_t>(cache_bytes / (p.positions * p.heads * 2 * tile_row_bytes), 1, std::min(p.rows, max_grid));
  while (p.rows % rows != 0) --rows;
  return rows;
}

template <int Groups, typename Memory, typename... Arguments>
cudaError_t launch(void (*kernel)(Arguments...), const Attention& p, cudaStream_t stream,
                   const Arguments&... arguments) {
  constexpr int bytes = shared_bytes<Memory>;
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return error;
  const int64_t rows = concurrent_rows(p);
  const dim3 blocks(static_cast<unsigned>(p.heads), static_cast<unsigned>(rows),
                    static_cast<unsigned>(p.rows / rows * TileCoords<Groups>::blocks_per_row(p)));
  kernel<<<blocks, Groups * warpgroup_threads, bytes, stream>>>(arguments...);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_attention(const CUtensorMap& qkv, const Attention& p, cudaStream_t stream) {
  return launch<query_groups, ForwardMemory>(attention_forward, p, stream, qkv, p);
}

cudaError_t launch_attention_backward(const CUtensorMap& qkv, const CUtensorMap& d_output, const AttentionBackward& b,
                                      cudaStream_t stream) {
  const cudaError_t error =
      launch<query_groups, QueryMemory>(attention_backward_queries, b.forward, stream, qkv, d_output, b);
  if (error != cudaSuccess) return error;
  return launch<key_groups, KeyMemory>(attention_backward_keys, b.forward, stream, qkv, d_output, b);
}

}  // namespace myxtts
