#include "model/cpu_attention.h"

#include "model/cpu_products.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

namespace myxtts {
namespace {

constexpr int64_t positions = 70, heads = 3, width = 64;

at::Tensor random(at::IntArrayRef shape, uint64_t seed) {
  return at::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed));
}

TEST(CpuAttention, equals_libtorchs_of_each_row_alone_and_never_reads_padding) {
  const std::vector<int32_t> lengths = {70, 1, 0, 33};
  const auto rows = static_cast<int64_t>(lengths.size());
  at::Tensor qkv = random({rows, positions, 3, heads, width}, 1);
  const at::Tensor d_output = random({rows, positions, heads, width}, 2), zeros = at::zeros_like(d_output);
  for (int64_t row = 0; row < rows; ++row) qkv[row].slice(0, lengths[row]).fill_(std::nanf(""));

  const at::Tensor output = cpu_attention(qkv, at::tensor(lengths));
  const AttentionGradients d = cpu_attention_backward(qkv, at::tensor(lengths), d_output);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t length = lengths[row];
    for (const at::Tensor& made : {output, d.d_q, d.d_k, d.d_v}) {
      EXPECT_TRUE(made[row].slice(0, length).equal(zeros[row].slice(0, length))) << row;
    }
    if (length == 0) continue;
    const at::Tensor own = qkv[row].narrow(0, 0, length).to(at::kDouble).detach().requires_grad_();
    const auto part = [&](int64_t number) { return own.select(1, number).transpose(0, 1).unsqueeze(0); };
    const at::Tensor wanted = at::scaled_dot_product_attention(part(0), part(1), part(2))[0].transpose(0, 1);
    const at::Tensor d_own =
        torch::autograd::grad({wanted}, {own}, {d_output[row].narrow(0, 0, length).to(at::kDouble)})[0];
    const auto distance = [&](const at::Tensor& made, const at::Tensor& reference) {
      return (made[row].narrow(0, 0, length) - reference).abs().max().item<double>();
    };
    EXPECT_LT(distance(output, wanted), 1e-5) << row;
    EXPECT_LT(distance(d.d_q, d_own.select(1, 0)), 1e-5) << row;
    EXPECT_LT(distance(d.d_k, d_own.select(1, 1)), 1e-5) << row;
    EXPECT_LT(distance(d.d_v, d_own.select(1, 2)), 1e-5) << row;
  }
}

TEST(CpuProducts, fast_ones_are_as_exact_as_the_processor_makes_them) {
  const at::Tensor x = random({150, 300}, 3), y = random({300, 90}, 4);
  const at::Tensor exact = at::mm(x.to(at::kDouble), y.to(at::kDouble));
  const auto precision = at::globalContext().float32MatmulPrecision();
  use_fast_cpu_products();
  const at::Tensor fast = at::mm(x, y);
  at::globalContext().setFloat32MatmulPrecision(precision == at::Float32MatmulPrecision::HIGHEST ? "highest"
                                                                                                 : "medium");
  const double error = ((fast - exact).norm() / exact.norm()).item<double>();
  EXPECT_LT(error, 1e-2);  // bfloat16 with float sums; in float 1e-6
}

}  // namespace
}  // namespace myxtts
