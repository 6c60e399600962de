// What Hopper has for matrices: tiles that copy themselves from global memory into shared memory and say so at a
// barrier, and products that four warps ask for together and that run while they do something else. sm_90a only.
//
// A tile is some rows of 64 bfloat16 (128 bytes), its 16-byte pieces swizzled as the copy engine and the products
// agree on: neither needs to be told where a value lies.
#pragma once

#include <cstdint>

#include <cuda.h>

namespace myxtts::hopper {

constexpr int group_width = 128;     // threads of a warpgroup, which multiplies together
constexpr int group_rows = 64;       // rows of a product
constexpr int tile_width = 64;       // values of a tile's row
constexpr int tile_row_bytes = 128;  // of them

__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// Waits until as many arrivals, and as many bytes, have come as were asked for; then begins anew with the other parity.
struct Barrier {
  uint64_t state;

  __device__ void begin(uint32_t arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(this)), "r"(arrivals));
  }
  __device__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(this)) : "memory");
  }
  __device__ void arrive_expecting(uint32_t bytes) {
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

// Barriers that were begun, for the copy engine too; the block's threads must meet afterwards.
__device__ inline void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
}

// Rows of a tensor [outer, rows, parts, 64] from `row` on, of one part; behind the last row come zeros.
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

// Where a tile begins, as products are told: 1,024 bytes from eight rows to the next eight, swizzled over 128 bytes.
__device__ inline uint64_t tile_descriptor(const void* tile) {
  return (uint64_t{1} << 62) | (uint64_t{1024 >> 4} << 32) | (uint64_t{1} << 16) | (shared_address(tile) >> 4 & 0x3FFF);
}
constexpr uint64_t next_16_columns = 32 >> 4;  // added to a descriptor
constexpr uint64_t next_16_rows = (16 * 128) >> 4;

// What is computed of these values is computed by now, and what uses them comes later: the compiler does not see that
// products write them while other instructions run.
template <int Count>
__device__ void settle(float (&values)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(values[i])::"memory");
}

// With the sums that the products write.
template <int... Counts>
__device__ void begin_products(float (&... sums)[Counts]) {
  (settle(sums), ...);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until all but the `Left` latest groups of products are done, with the sums that are then there.
template <int Left, int... Counts>
__device__ void wait_for_products(float (&... sums)[Counts]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Left) : "memory");
  (settle(sums), ...);
}

// The 32 sums of a thread, as a product is told of them: in its text, and as its operands.
#define SUMS                                                           \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, " \
  "%15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, "  \
  "%28, %29, %30, %31}"
#define FOUR_SUMS(sum, i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define ALL_SUMS(sum)                                                                                                  \
  FOUR_SUMS(sum, 0), FOUR_SUMS(sum, 4), FOUR_SUMS(sum, 8), FOUR_SUMS(sum, 12), FOUR_SUMS(sum, 16), FOUR_SUMS(sum, 20), \
      FOUR_SUMS(sum, 24), FOUR_SUMS(sum, 28)

enum class Right { rows, columns };  // what of b an element of the sum is made with: 64 rows of 16, or 16 rows of 64

// sum (+)= a [64 x 16] x b. `a` lies in registers: 64 rows of 16 as sums lie, in pairs.
template <Right right>
__device__ void multiply(float (&sum)[32], const uint32_t (&a)[4], uint64_t b, int add) {
  asm volatile(
      "{\n.reg .pred add;\nsetp.ne.b32 add, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " SUMS ", {%32, %33, %34, %35}, %36, add, 1, 1, %38;\n}"
      : ALL_SUMS(sum)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(right == Right::columns ? 1 : 0));
}

// The same with `a` in a tile, and rows of b.
__device__ inline void multiply(float (&sum)[32], uint64_t a, uint64_t b, int add) {
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
