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
  double growth = 0;  // of keys from the first position to the last
};

struct Result {
  at::Tensor seen, d_values;
};

at::Tensor lengths_of(const Example& example) {
  return at::tensor(at::ArrayRef<int32_t>(example.lengths.data(), example.lengths.size()), at::kInt);
}

// Values and the gradient of what is seen, rounded to bfloat16.
std::pair<at::Tensor, at::Tensor> inputs_of(const Example& example) {
  const auto rows = static_cast<int64_t>(example.lengths.size());
  at::manual_seed(5);
  const auto rounded = [](const at::Tensor& x) { return x.to(at::kBFloat16).to(at::kDouble); };
  const at::Tensor values = at::randn({rows, example.positions, 3, example.heads, head_width}) * 1.5;
  values.select(2, 1).mul_((1 + at::linspace(0, example.growth, example.positions)).view({1, -1, 1, 1}));
  return {rounded(values), rounded(at::randn({rows, example.positions, example.heads, head_width}))};
}

// In double precision, by its definition; queries and keys are turned here, so that their gradients come turned back.
Result by_definition(const Example& example) {
  const auto [turned, d_seen] = inputs_of(example);
  const RowMask mask = make_row_mask(lengths_of(example), example.positions, at::kFloat, true);
  const at::Tensor cosines = mask.rotary[0].unsqueeze(1), sines = mask.rotary[1].unsqueeze(1);
  const auto turn = [&](const at::Tensor& x, double direction) {
    const std::vector<at::Tensor> halves = x.chunk(2, -1);
    return at::cat(
        {halves[0] * cosines - direction * halves[1] * sines, halves[1] * cosines + direction * halves[0] * sines}, -1);
  };
  const std::vector<at::Tensor> parts = turned.unbind(2);
  const at::Tensor values = at::stack({turn(parts[0], -1), turn(parts[1], -1), parts[2]}, 2).requires_grad_();
  at::Tensor seen = at::zeros_like(d_seen);
  for (int64_t row = 0; row < turned.size(0); ++row) {
    const int64_t length = example.lengths[row];
    const auto part = [&](int64_t number) {
      const at::Tensor x = values[row].select(1, number);
      return (number < 2 ? turn(x, 1) : x).slice(0, 0, length).transpose(0, 1);
    };
    const at::Tensor weights = at::softmax(at::matmul(part(0), part(1).transpose(1, 2)) / 8, -1);
    if (length > 0) seen[row].slice(0, 0, length).copy_(at::matmul(weights, part(2)).transpose(0, 1));
  }
  (seen * d_seen).sum().backward();
  return {seen.detach(), values.grad()};
}

// [rows, positions]
at::Tensor padding_of(const Example& example) {
  return at::arange(example.positions, at::kInt) >= lengths_of(example).unsqueeze(1);
}

Result by_kernels(const Example& example, const at::Tensor& exact_values, const at::Tensor& exact_d_seen) {
  const at::Device gpu(at::kCUDA, 0);
  const at::Tensor values = exact_values.to(at::kBFloat16).to(gpu), d_seen = exact_d_seen.to(at::kBFloat16).to(gpu);
  const RowMask mask = make_row_mask(lengths_of(example).to(gpu), example.positions, at::kBFloat16, true);
  Result made{at::full_like(d_seen, 77), at::full_like(values, 77)};
  const at::Tensor offsets = empty_offsets(values).fill_(77);
  attend_fused(values, mask, made.seen, offsets);
  attend_fused_backward(values, mask, made.seen, offsets, d_seen, made.d_values);
  return made;
}

Result by_kernels(const Example& example) {
  const auto [values, d_seen] = inputs_of(example);
  return by_kernels(example, values, d_seen);
}

double off(const at::Tensor& found, const at::Tensor& expected) {
  const double size = expected.norm().item<double>(),
               error = (found.cpu().to(at::kDouble) - expected).norm().item<double>();
  return size == 0 ? error : error / size;
}

bool no_hopper() { return device_count() == 0 || !at::globalContext().hasCUDA() || !gpu_attends(); }

const std::vector<Example> examples = {{1, 1, {1}},
                                       {64, 1, {64}},
                                       {65, 2, {65, 64}},
                                       {37, 3, {37, 12, 1}},
                                       {200, 2, {200, 0}},
                                       {333, 3, {333, 64, 200}},
                                       {150, 8, {150, 149, 3, 77}},
                                       {870, 2, {870, 513}},
                                       {1300, 1, {1300, 1}},
                                       {400, 2, {400, 190}, 3},    // weights get too large on the way
                                       {2400, 16, {70, 700, 1}}};  // more than the cache holds: row after row

TEST(AttentionGpu, gives_what_its_definition_gives) {
  if (no_hopper()) GTEST_SKIP() << "no GPU of the Hopper kind";
  for (const Example& example : examples) {
    const std::string name = fmt::format("{} positions, {} heads", example.positions, example.heads);
    const Result found = by_kernels(example), expected = by_definition(example);
    EXPECT_LT(off(found.seen, expected.seen), 4e-3) << name;
    for (int64_t part = 0; part < 3; ++part) {
      // One position sees itself alone: queries and keys have no gradient, and what rounding leaves has no size to
      // compare with.
      const at::Tensor exact = expected.d_values.select(2, part);
      if (example.positions == 1 && part < 2) continue;
      EXPECT_LT(off(found.d_values.select(2, part), exact), 8e-3) << name << ", part " << part;
    }
  }
}

// Scores of padding so large that a weight of theirs would be infinite.
TEST(AttentionGpu, padding_changes_nothing_and_is_zero_however_large_it_is) {
  if (no_hopper()) GTEST_SKIP() << "no GPU of the Hopper kind";
  for (const Example& example : examples) {
    const at::Tensor padding = padding_of(example);
    const auto [values, d_seen] = inputs_of(example);
    const at::Tensor larger = at::where(padding.unsqueeze(-1).unsqueeze(-1), 100.0, 1.0);
    const Result plain = by_kernels(example),
                 found = by_kernels(example, values * larger.unsqueeze(-1), d_seen * larger);
    EXPECT_TRUE(at::equal(found.seen, plain.seen));
    EXPECT_TRUE(at::equal(found.d_values, plain.d_values));
    EXPECT_EQ(found.seen.cpu().index({padding}).abs().sum().item<double>(), 0);
    EXPECT_EQ(found.d_values.cpu().index({padding}).abs().sum().item<double>(), 0);
  }
}

// The step is skipped for what is not finite: it must not get lost on the way.
TEST(AttentionGpu, what_is_not_a_number_stays_so) {
  if (no_hopper()) GTEST_SKIP() << "no GPU of the Hopper kind";
  const Example example{100, 2, {100, 70}};
  const auto [values, d_seen] = inputs_of(example);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (int64_t part = 0; part < 3; ++part) {
    const at::Tensor planted = values.clone();
    planted[1][69][part][1][7] = nan;
    const Result found = by_kernels(example, planted, d_seen);
    EXPECT_TRUE(found.seen[1].isnan().any().item<bool>()) << "part " << part;
    EXPECT_TRUE(found.d_values[1].isnan().any().item<bool>()) << "part " << part;
    EXPECT_FALSE(found.d_values[0].isnan().any().item<bool>()) << "part " << part;
  }
  const at::Tensor planted = d_seen.clone();
  planted[1][69][1][7] = nan;
  EXPECT_TRUE(by_kernels(example, values, planted).d_values[1].isnan().any().item<bool>());
}

TEST(AttentionGpu, gives_the_same_bits_every_time) {
  if (no_hopper()) GTEST_SKIP() << "no GPU of the Hopper kind";
  const Example example{800, 8, {800, 700, 3, 64, 500, 800}};
  const Result first = by_kernels(example);
  for (int i = 0; i < 5; ++i) {
    const Result again = by_kernels(example);
    EXPECT_TRUE(at::equal(again.seen, first.seen));
    EXPECT_TRUE(at::equal(again.d_values, first.d_values));
  }
}

}  // namespace
}  // namespace myxtts
