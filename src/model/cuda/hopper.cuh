// Wrappers of Hopper instructions (sm_90a only): TMA tile copies that complete on an mbarrier, and asynchronous wgmma
// products of a warpgroup.
//
// A tile is rows of 64 bfloat16 (128 bytes) with the 128-byte swizzle that TMA and wgmma share.
#pragma once

#include <cstdint>

#include <cuda.h>

namespace myxtts::hopper {

constexpr int warpgroup_threads = 128;
constexpr int warpgroup_rows = 64;  // rows of a wgmma
constexpr int tile_width = 64;      // values per row
constexpr int tile_row_bytes = 128;

__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// mbarrier: a phase completes after the expected arrivals and bytes, then the parity flips.
struct Barrier {
  uint64_t state;

  __device__ void init(uint32_t arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(this)), "r"(arrivals));
  }
  __device__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(this)) : "memory");
  }
  __device__ void arrive_expect_bytes(uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(this)), "r"(bytes)
                 : "memory");
  }
  __device__ void wait(uint32_t parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}" ::"r"(shared_address(this)),
        "r"(parity)
        : "memory");
  }
};

// Makes initialised barriers visible to TMA. Requires __syncthreads() afterwards.
__device__ inline void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
}

// Copies one tile of a tensor [outer, rows, parts, 64], from `row` of one part. Fills rows after the last with zeros.
__device__ inline void copy_tile(void* to, const CUtensorMap& from, int part, int row, int outer, Barrier& done) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], "
      "[%2];" ::"r"(shared_address(to)),
      "l"(&from), "r"(shared_address(&done)), "r"(0), "r"(part), "r"(row), "r"(outer)
      : "memory");
}

__device__ inline void copy_bytes(void* to, const void* from, uint32_t bytes, Barrier& done) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(&done))
               : "memory");
}

// wgmma matrix descriptor of a tile: stride of 1,024 bytes per eight rows, 128-byte swizzle.
__device__ inline uint64_t tile_descriptor(const void* tile) {
  return (uint64_t{1} << 62) | (uint64_t{1024 >> 4} << 32) | (uint64_t{1} << 16) | (shared_address(tile) >> 4 & 0x3FFF);
}
constexpr uint64_t next_16_columns = 32 >> 4;  // added to a descriptor
constexpr uint64_t next_16_rows = (16 * 128) >> 4;

// Keeps the compiler from moving accesses to these registers, which wgmma writes asynchronously.
template <int Count>
__device__ void register_fence(float (&values)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(values[i])::"memory");
}

// `sums`: the accumulators that the next products write.
template <int... Counts>
__device__ void wgmma_fence(float (&... sums)[Counts]) {
  (register_fence(sums), ...);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits for all but the `Pending` latest groups. `sums`: the accumulators that are then complete.
template <int Pending, int... Counts>
__device__ void wgmma_wait(float (&... sums)[Counts]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
  (register_fence(sums), ...);
}

// The 32 accumulator registers of a thread, in the assembly text and as operands.
#define SUMS                                                           \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, " \
  "%15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, "  \
  "%28, %29, %30, %31}"
#define FOUR_SUMS(sum, i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define ALL_SUMS(sum)                                                                                                  \
  FOUR_SUMS(sum, 0), FOUR_SUMS(sum, 4), FOUR_SUMS(sum, 8), FOUR_SUMS(sum, 12), FOUR_SUMS(sum, 16), FOUR_SUMS(sum, 20), \
      FOUR_SUMS(sum, 24), FOUR_SUMS(sum, 28)

enum class RightOperand { rows, columns };  // layout of b: [n, k] rows (transposed), or [k, n] columns

// sum (+)= a [64 x 16] x b. `a` is in registers, in the accumulator layout packed to bfloat16 pairs.
template <RightOperand right>
__device__ void wgmma(float (&sum)[32], const uint32_t (&a)[4], uint64_t b, int add) {
  asm volatile(
      "{\n.reg .pred add;\nsetp.ne.b32 add, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " SUMS ", {%32, %33, %34, %35}, %36, add, 1, 1, %38;\n}"
      : ALL_SUMS(sum)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(right == RightOperand::columns ? 1 : 0));
}

// The same with `a` in a tile and b as rows.
__device__ inline void wgmma(float (&sum)[32], uint64_t a, uint64_t b, int add) {
  asm volatile(
      "{\n.reg .pred add;\nsetp.ne.b32 add, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " SUMS ", %32, %33, add, 1, 1, 0, 0;\n}"
      : ALL_SUMS(sum)
      : "l"(a), "l"(b), "r"(add));
}

#undef SUMS
#undef FOUR_SUMS
#undef ALL_SUMS

}  // namespace myxtts::hopper
