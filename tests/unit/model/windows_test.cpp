#include "model/windows.h"

#include "device/device.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

namespace myxtts {
namespace {

struct Case {
  int64_t height, width, channels, tall, wide, down, across;
};

const Case cases[] = {{40, 3, 1, 5, 1, 3, 1}, {41, 2, 16, 5, 1, 3, 1},  {14, 11, 32, 5, 1, 1, 1},
                      {9, 33, 1, 3, 9, 1, 1}, {7, 10, 4, 3, 3, 1, 2},   {1, 1, 8, 5, 1, 3, 1},
                      {6, 5, 24, 3, 3, 2, 2}, {100, 5, 128, 5, 1, 3, 1}};

// What a convolution with them makes, and the gradient of `x`.
std::pair<at::Tensor, at::Tensor> convolved(const Case& c, const at::Tensor& x, const at::Tensor& weight) {
  const at::Tensor leaf = x.detach().clone().requires_grad_(true);
  const at::Tensor windows = lay_windows(leaf, c.tall, c.wide, c.down, c.across);
  const int64_t values = c.tall * c.wide * c.channels;
  const at::Tensor made = at::matmul(windows.narrow(3, 0, values).to(at::kFloat), weight.view({-1, values}).t());
  EXPECT_EQ(windows.narrow(3, values, windows.size(3) - values).abs().sum().item<float>(), 0);
  made.square().sum().backward();
  return {made.detach(), leaf.grad().to(at::kFloat)};
}

TEST(Windows, make_convolutions_of_products) {
  for (const Case& c : cases) {
    const at::Tensor x = at::randn({2, c.height, c.width, c.channels});
    const at::Tensor weight = at::randn({6, c.tall, c.wide, c.channels});
    const auto [made, gradient] = convolved(c, x, weight);
    const at::Tensor leaf = x.clone().requires_grad_(true);
    const at::Tensor wanted = at::conv2d(leaf.permute({0, 3, 1, 2}), weight.permute({0, 3, 1, 2}), {},
                                         {c.down, c.across}, {c.tall / 2, c.wide / 2});
    wanted.square().sum().backward();
    ASSERT_EQ(made.sizes(), wanted.permute({0, 2, 3, 1}).sizes());
    EXPECT_TRUE(at::allclose(made, wanted.permute({0, 2, 3, 1}), 1e-4, 1e-4)) << c.height;
    EXPECT_TRUE(at::allclose(gradient, leaf.grad(), 1e-3, 1e-3)) << c.height;
  }
}

TEST(Windows, are_the_same_on_a_gpu) {
  if (device_count() == 0 || !at::globalContext().hasCUDA())
    GTEST_SKIP() << "there is no GPU: its windows are NOT tested";
  for (const Case& c : cases) {
    const at::Tensor x = at::randn({3, c.height, c.width, c.channels}).to(at::kBFloat16);
    const at::Tensor wanted = lay_windows(x.to(at::kFloat), c.tall, c.wide, c.down, c.across);
    const at::Tensor leaf = x.to(at::Device(at::kCUDA, 0)).requires_grad_(true);
    const at::Tensor made = lay_windows(leaf, c.tall, c.wide, c.down, c.across);
    EXPECT_TRUE(at::equal(made.cpu().to(at::kFloat), wanted)) << c.height;
    const at::Tensor gradient = at::randn(wanted.sizes()).to(at::kBFloat16);
    made.backward(gradient.to(made.device()));
    const at::Tensor reference = x.to(at::kFloat).requires_grad_(true);
    lay_windows(reference, c.tall, c.wide, c.down, c.across).backward(gradient.to(at::kFloat));
    EXPECT_TRUE(at::allclose(leaf.grad().cpu().to(at::kFloat), reference.grad(), 1e-2, 1e-2)) << c.height;
  }
}

}  // namespace
}  // namespace myxtts
