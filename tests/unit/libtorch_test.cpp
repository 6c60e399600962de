#include <ATen/Functions.h>
#include <gtest/gtest.h>

TEST(Libtorch, the_one_that_was_found_multiplies) {
  const at::Tensor product = at::matmul(at::full({2, 3}, 2.0), at::full({3, 2}, 0.5));
  EXPECT_EQ(product.sum().item<float>(), 12.0F);
}
