#include "model/condition.h"

#include "device/device.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

namespace myxtts {
namespace {

constexpr int64_t width = 256, frames = 75;

// Row 0 has a reference, 1 has one that is empty, 2 is dropped, 3 and 4 come from the table, 5 is nobody known.
ConditionInput example(at::ScalarType type, at::Device device) {
  const auto values = [&](at::IntArrayRef shape) { return at::randn(shape).to(at::kBFloat16).to(device, type); };
  const auto ints = [&](std::vector<int> numbers) { return at::tensor(numbers, at::kInt).to(device); };
  ConditionInput input;
  at::manual_seed(5);
  input.speaker_table = values({7, width}), input.language_table = values({2, width});
  input.references = values({3, frames, width});
  for (at::Tensor* leaf : {&input.speaker_table, &input.language_table, &input.references}) leaf->requires_grad_(true);
  input.reference_lengths = ints({40, 0, 9});
  input.speaker = ints({1, 2, 3, 4, 4, -1}), input.language = ints({0, 1, 1, 0, 0, -1});
  input.kept = at::tensor({0.5F, 0.9F, 0.05F, 0.2F, 0.3F, 0.4F}).to(device);
  input.dropout = 0.1;
  return input;
}

TEST(Condition, is_a_reference_or_a_speaker_and_a_language) {
  const ConditionInput input = example(at::kFloat, at::kCPU);
  const at::Tensor made = choose_condition(input, true);
  const at::Tensor speakers = unit_rows(input.speaker_table), languages = unit_rows(input.language_table);
  EXPECT_TRUE(at::allclose(made[0], unit_rows(input.references[0].narrow(0, 0, 40).sum(0)) + languages[0], 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(made[1], speakers[2] + languages[1]));
  EXPECT_EQ(made[2].abs().sum().item<float>(), 0);
  EXPECT_TRUE(at::allclose(made[3], speakers[4] + languages[0]));
  EXPECT_TRUE(at::equal(made[3], made[4]));
  EXPECT_EQ(made[5].abs().sum().item<float>(), 0);
}

TEST(Condition, is_the_same_on_a_gpu_with_its_gradients) {
  if (device_count() == 0 || !at::globalContext().hasCUDA()) {
    GTEST_SKIP() << "there is no GPU: its conditions are NOT tested";
  }
  const at::Tensor weight = at::randn({6, width}).to(at::kBFloat16);
  std::vector<std::vector<at::Tensor>> results;
  for (const at::Device device : {at::Device(at::kCPU), at::Device(at::kCUDA, 0)}) {
    const at::ScalarType type = device.is_cpu() ? at::kFloat : at::kBFloat16;
    const ConditionInput input = example(type, device);
    const at::Tensor made = choose_condition(input, true);
    made.backward(weight.to(device, type));
    std::vector<at::Tensor>& result = results.emplace_back();
    for (const at::Tensor& tensor :
         {made.detach(), input.speaker_table.grad(), input.language_table.grad(), input.references.grad()}) {
      result.push_back(tensor.cpu().to(at::kFloat));
    }
  }
  for (size_t i = 0; i < results[0].size(); ++i) {
    EXPECT_TRUE(at::allclose(results[1][i], results[0][i], 2e-2, 2e-2)) << i;
  }
}

}  // namespace
}  // namespace myxtts
