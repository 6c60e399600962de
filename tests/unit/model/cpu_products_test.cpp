#include "model/cpu_products.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <malloc.h>

namespace myxtts {
namespace {

size_t bytes_in_use() {
  const struct mallinfo2 heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

TEST(PlainCpuProducts, keep_nothing_of_a_shape_and_end_with_their_scope) {
  use_fast_cpu_products();
  const auto multiply = [](int64_t rows) { at::mm(at::rand({rows, 256}), at::rand({256, 512})); };
  {
    const PlainCpuProducts plain;
    for (int64_t rows = 101; rows < 140; ++rows) multiply(rows);  // what the library keeps for all shapes
    const size_t before = bytes_in_use();
    for (int64_t rows = 140; rows < 180; ++rows) multiply(rows);
    EXPECT_LT(bytes_in_use(), before + (size_t{2} << 20)) << "oneDNN would keep 10 MB";
  }
  EXPECT_TRUE(uses_fast_cpu_products());
}

}  // namespace
}  // namespace myxtts
