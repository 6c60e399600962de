#include "model/attention.h"

#include "device/device.h"
#include "model/fused_calls.h"
#include "model/size.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace myxtts {
namespace {

struct Example {
  int64_t positions, heads;
  std::vector<int32_t> lengths;
  double key_growth = 0;  // growth of the keys from the first position to the last
};

struct Result {
  at::Tensor output, d_qkv;
};

at::Tensor lengths_of(const Example& example) {
  return at::tensor(at::ArrayRef<int32_t>(example.lengths.data(), example.lengths.size()), at::kInt);
}

// QKV and the gradient of the output, rounded to bfloat16.
std::pair<at::Tensor, at::Tensor> inputs_of(const Example& example) {
  const auto rows = static_cast<int64_t>(example.lengths.size());
  at::manual_seed(5);
  const auto rounded = [](const at::Tensor& x) { return x.to(at::kBFloat16).to(at::kDouble); };
  const at::Tensor qkv = at::randn({rows, example.positions, 3, example.heads, head_width}) * 1.5;
  qkv.select(2, 1).mul_((1 + at::linspace(0, example.key_growth, example.positions)).view({1, -1, 1, 1}));
  return {rounded(qkv), rounded(at::randn({rows, example.positions, example.heads, head_width}))};
}

// Attention by its definition in double precision. Includes the rotary embedding, so that gradients are with respect to
// its input.
Result reference(const Example& example) {
  const auto [rotated, d_output] = inputs_of(example);
  const RowMask mask = make_row_mask(lengths_of(example), example.positions, at::kFloat, true);
  const at::Tensor cosines = mask.rotary[0].unsqueeze(1), sines = mask.rotary[1].unsqueeze(1);
  const auto rotate = [&](const at::Tensor& x, double direction) {
    const std::vector<at::Tensor> halves = x.chunk(2, -1);
    return at::cat(
        {halves[0] * cosines - direction * halves[1] * sines, halves[1] * cosines + direction * halves[0] * sines}, -1);
  };
  const std::vector<at::Tensor> parts = rotated.unbind(2);
  const at::Tensor qkv = at::stack({rotate(parts[0], -1), rotate(parts[1], -1), parts[2]}, 2).requires_grad_();
  at::Tensor output = at::zeros_like(d_output);
  for (int64_t row = 0; row < rotated.size(0); ++row) {
    const int64_t length = example.lengths[row];
    const auto part = [&](int64_t number) {
      const at::Tensor x = qkv[row].select(1, number);
      return (number < 2 ? rotate(x, 1) : x).slice(0, 0, length).transpose(0, 1);
    };
    const at::Tensor weights = at::softmax(at::matmul(part(0), part(1).transpose(1, 2)) / 8, -1);
    if (length > 0) output[row].slice(0, 0, length).copy_(at::matmul(weights, part(2)).transpose(0, 1));
  }
  (output * d_output).sum().backward();
  return {output.detach(), qkv.grad()};
}

// [rows, positions]
at::Tensor padding_of(const Example& example) {
  return at::arange(example.positions, at::kInt) >= lengths_of(example).unsqueeze(1);
}

Result run_kernels(const Example& example, const at::Tensor& exact_qkv, const at::Tensor& exact_d_output) {
  const at::Device gpu(at::kCUDA, 0);
  const at::Tensor qkv = exact_qkv.to(at::kBFloat16).to(gpu), d_output = exact_d_output.to(at::kBFloat16).to(gpu);
  const RowMask mask = make_row_mask(lengths_of(example).to(gpu), example.positions, at::kBFloat16, true);
  Result result{at::full_like(d_output, 77), at::full_like(qkv, 77)};
  const at::Tensor neg_lse = empty_neg_lse(qkv).fill_(77);
  fused_attention(qkv, mask, result.output, neg_lse);
  fused_attention_backward(qkv, mask, result.output, neg_lse, d_output, result.d_qkv);
  return result;
}

Result run_kernels(const Example& example) {
  const auto [qkv, d_output] = inputs_of(example);
  return run_kernels(example, qkv, d_output);
}

double relative_error(const at::Tensor& found, const at::Tensor& expected) {
  const double size = expected.norm().item<double>(),
               error = (found.cpu().to(at::kDouble) - expected).norm().item<double>();
  return size == 0 ? error : error / size;
}

bool no_hopper() { return device_count() == 0 || !at::globalContext().hasCUDA() || !gpu_has_fused_attention(); }

const std::vector<Example> examples = {{1, 1, {1}},
                                       {64, 1, {64}},
                                       {65, 2, {65, 64}},
                                       {37, 3, {37, 12, 1}},
                                       {200, 2, {200, 0}},
                                       {333, 3, {333, 64, 200}},
                                       {150, 8, {150, 149, 3, 77}},
                                       {870, 2, {870, 513}},
                                       {1300, 1, {1300, 1}},
                                       {400, 2, {400, 190}, 3},    // weights overflow after the first tile
                                       {2400, 16, {70, 700, 1}}};  // more than L2 holds: one row after another

TEST(AttentionGpu, matches_the_reference) {
  if (no_hopper()) GTEST_SKIP() << "needs a Hopper GPU (sm_90)";
  for (const Example& example : examples) {
    const std::string name = fmt::format("{} positions, {} heads", example.positions, example.heads);
    const Result found = run_kernels(example), expected = reference(example);
    EXPECT_LT(relative_error(found.output, expected.output), 4e-3) << name;
    for (int64_t part = 0; part < 3; ++part) {
      // With one position queries and keys have zero gradient, so a relative error is undefined.
      const at::Tensor exact = expected.d_qkv.select(2, part);
      if (example.positions == 1 && part < 2) continue;
      EXPECT_LT(relative_error(found.d_qkv.select(2, part), exact), 8e-3) << name << ", part " << part;
    }
  }
}

// Scores of padding so large that their weights would be infinite.
TEST(AttentionGpu, padding_does_not_change_results_and_is_zero) {
  if (no_hopper()) GTEST_SKIP() << "needs a Hopper GPU (sm_90)";
  for (const Example& example : examples) {
    const at::Tensor padding = padding_of(example);
    const auto [qkv, d_output] = inputs_of(example);
    const at::Tensor larger = at::where(padding.unsqueeze(-1).unsqueeze(-1), 100.0, 1.0);
    const Result plain = run_kernels(example),
                 found = run_kernels(example, qkv * larger.unsqueeze(-1), d_output * larger);
    EXPECT_TRUE(at::equal(found.output, plain.output));
    EXPECT_TRUE(at::equal(found.d_qkv, plain.d_qkv));
    EXPECT_EQ(found.output.cpu().index({padding}).abs().sum().item<double>(), 0);
    EXPECT_EQ(found.d_qkv.cpu().index({padding}).abs().sum().item<double>(), 0);
  }
}

// A step with non-finite gradients is skipped, so that NaN must propagate.
TEST(AttentionGpu, propagates_nan) {
  if (no_hopper()) GTEST_SKIP() << "needs a Hopper GPU (sm_90)";
  const Example example{100, 2, {100, 70}};
  const auto [qkv, d_output] = inputs_of(example);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (int64_t part = 0; part < 3; ++part) {
    const at::Tensor planted = qkv.clone();
    planted[1][69][part][1][7] = nan;
    const Result found = run_kernels(example, planted, d_output);
    EXPECT_TRUE(found.output[1].isnan().any().item<bool>()) << "part " << part;
    EXPECT_TRUE(found.d_qkv[1].isnan().any().item<bool>()) << "part " << part;
    EXPECT_FALSE(found.d_qkv[0].isnan().any().item<bool>()) << "part " << part;
  }
  const at::Tensor planted = d_output.clone();
  planted[1][69][1][7] = nan;
  EXPECT_TRUE(run_kernels(example, qkv, planted).d_qkv[1].isnan().any().item<bool>());
}

TEST(AttentionGpu, is_deterministic) {
  if (no_hopper()) GTEST_SKIP() << "needs a Hopper GPU (sm_90)";
  const Example example{800, 8, {800, 700, 3, 64, 500, 800}};
  const Result first = run_kernels(example);
  for (int i = 0; i < 5; ++i) {
    const Result again = run_kernels(example);
    EXPECT_TRUE(at::equal(again.output, first.output));
    EXPECT_TRUE(at::equal(again.d_qkv, first.d_qkv));
  }
}

}  // namespace
}  // namespace myxtts
