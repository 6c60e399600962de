#include "train/step.h"

#include "base/error.h"
#include "device/device.h"
#include "model/attention.h"
#include "train/voice_trainable.h"

#include <limits>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

namespace myxtts {
namespace {

// A voice of a size of its own.
class SmallVoice : public VoiceTrainable {
 public:
  explicit SmallVoice(const OptimizerSettings& optimizer = {}, const ModelSize& size = {"test", 1, 64, 2, 64})
      : VoiceTrainable(spec(size), optimizer, true) {}

 private:
  static VoiceSpec spec(const ModelSize& size) {
    VoiceSpec spec;
    spec.size = size;
    spec.vocabulary = 20;
    spec.n_mels = 16;
    return spec;
  }
};

TensorMap make_batch(at::Device device, uint64_t seed, int64_t tokens = 12, int64_t frames = 40) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const int64_t rows = 3;
  return {{"tokens", at::randint(2, 20, {rows, tokens}, generator, at::TensorOptions(at::kInt)).to(device)},
          {"text_lengths", at::tensor({12, 5, 9}, at::kInt).to(device)},
          {"mel_lengths", at::tensor({40, 30, 33}, at::kInt).to(device)},
          {"mel", at::randn({rows, frames, 16}, generator).to(device)}};
}

TEST(TrainingStep, skips_one_update_for_a_batch_that_is_not_finite_and_nothing_else) {
  const SmallVoice voice;
  TrainingStep step(voice, {});
  const auto train_on = [&](const TensorMap& batch) {
    step.begin(1e-3);
    step.add(batch, 5);
    step.update();
    return step.values();
  };
  EXPECT_EQ(train_on(make_batch(at::kCPU, 1)).skipped_total, 0);
  const at::Tensor before = step.states().front().master.clone(), moment = step.states().front().first_moment.clone();
  TensorMap planted = make_batch(at::kCPU, 2);
  planted["mel"][1][3][2] = std::numeric_limits<float>::quiet_NaN();
  const StepValues skipped = train_on(planted);
  EXPECT_EQ(skipped.skipped_total, 1);
  EXPECT_EQ(skipped.skipped_in_a_row, 1);
  EXPECT_TRUE(step.states().front().master.equal(before));
  EXPECT_TRUE(step.states().front().first_moment.equal(moment));
  const StepValues after = train_on(make_batch(at::kCPU, 3));
  EXPECT_EQ(after.skipped_total, 1);
  EXPECT_EQ(after.skipped_in_a_row, 0);
  EXPECT_TRUE(std::isfinite(after.losses[0]));
  EXPECT_FALSE(step.states().front().master.equal(before));
}

TEST(TrainingStep, accumulates_the_gradients_of_all_weights_over_its_batches) {
  OptimizerSettings optimizer;
  optimizer.clip_norm = 1e9;
  const SmallVoice voice(optimizer);
  // The first moment of the first update is a tenth of the gradient.
  const auto moment_of = [&](const std::vector<uint64_t>& batches) {
    StepSettings settings;
    settings.accumulation = static_cast<int64_t>(batches.size());
    TrainingStep step(voice, settings);
    step.begin(1e-3);
    for (const uint64_t batch : batches) step.add(make_batch(at::kCPU, batch), 5);
    step.update();
    return step.states().front().first_moment.clone();
  };
  const at::Tensor both = moment_of({1, 2}), mean = (moment_of({1}) + moment_of({2})) / 2;
  for (const ParameterSpec& spec : voice.voice().layout().specs()) {
    const at::Tensor found = both.narrow(0, spec.first, spec.elements);
    EXPECT_TRUE(found.allclose(mean.narrow(0, spec.first, spec.elements), 1e-4, 1e-7)) << spec.name;
  }
}

TEST(TrainingStep, names_what_is_not_finite_when_it_is_inspected) {
  const SmallVoice voice;
  StepSettings settings;
  settings.policy.inspect = true;
  TrainingStep step(voice, settings);
  step.add(make_batch(at::kCPU, 1), 5);
  TensorMap planted = make_batch(at::kCPU, 2);
  planted["mel"][1][3][2] = std::numeric_limits<float>::infinity();
  try {
    step.add(planted, 5);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("mel [3, 40, 16] is not finite: 1 of 1920 values"), std::string::npos)
        << error.what();
  }
}

TEST(TrainingStep, names_where_an_operation_failed_when_it_is_inspected) {
  const SmallVoice voice;
  StepSettings settings;
  settings.policy.inspect = true;
  TrainingStep step(voice, settings);
  TensorMap planted = make_batch(at::kCPU, 2);
  planted["text_lengths"] = planted["text_lengths"].narrow(0, 0, 2);  // one row fewer
  try {
    step.add(planted, 5);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("after mel [3, 40, 16]"), std::string::npos) << error.what();
  }
}

TEST(TrainingStep, values_that_were_sent_are_those_of_their_step) {
  const SmallVoice voice;
  TrainingStep step(voice, {});
  step.begin(1e-3);
  step.add(make_batch(at::kCPU, 1), 5);
  step.update();
  const double loss = step.values().losses[0];
  step.send_values();
  step.begin(1e-3);
  step.add(make_batch(at::kCPU, 2), 6);
  step.update();
  EXPECT_TRUE(step.values_arrived());
  EXPECT_EQ(step.sent_values().losses[0], loss);
  EXPECT_NE(step.values().losses[0], loss);
}

bool no_gpu() { return device_count() == 0 || !at::globalContext().hasCUDA(); }

TEST(TrainingStepGpu, captured_and_not_captured_are_equal_to_rounding_for_100_steps) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  const SmallVoice voice;
  const at::Device gpu(at::kCUDA, 0);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    std::vector<std::vector<double>> losses;
    std::vector<at::Tensor> weights;
    for (const bool capture : {false, true}) {
      StepSettings settings;
      settings.device = gpu;
      settings.policy.bfloat16 = type == at::kBFloat16;
      settings.policy.capture = capture;
      TrainingStep step(voice, settings);
      losses.emplace_back();
      for (uint64_t i = 0; i < 100; ++i) {
        step.begin(1e-3);
        step.add(make_batch(gpu, i % 10), i);
        step.update();
        losses.back().push_back(step.values().losses[0]);
      }
      weights.push_back(step.states().front().master.cpu());
      EXPECT_EQ(step.captures(), capture ? 1 : 0);
    }
    if (type == at::kBFloat16 && gpu_has_fused_attention()) {
      EXPECT_TRUE(weights[1].equal(weights[0]));  // our own attention adds in one order
    }
    const double tolerance = type == at::kFloat ? 1e-4 : 2e-2;
    for (size_t i = 0; i < losses[0].size(); ++i) {
      EXPECT_NEAR(losses[1][i] / losses[0][i], 1, tolerance) << "step " << i;
    }
    EXPECT_LT(losses[1].back(), losses[1].front());
    EXPECT_LT((weights[1] - weights[0]).norm().item<double>() / weights[0].norm().item<double>(), tolerance);
  }
}

TEST(TrainingStepGpu, two_runs_have_the_same_bits) {
  if (no_gpu() || !gpu_has_fused_attention()) GTEST_SKIP() << "no GPU of the Hopper kind";
  const SmallVoice voice({}, {"test", 2, 192, 3, 256});
  const at::Device gpu(at::kCUDA, 0);
  std::vector<at::Tensor> weights;
  for (int run = 0; run < 2; ++run) {
    StepSettings settings;
    settings.device = gpu;
    settings.policy.bfloat16 = true;
    settings.policy.capture = true;
    TrainingStep step(voice, settings);
    for (uint64_t i = 0; i < 200; ++i) {
      step.begin(1e-3);
      step.add(make_batch(gpu, i % 10), i);
      step.update();
    }
    weights.push_back(step.states().front().master.cpu());
  }
  EXPECT_TRUE(weights[1].equal(weights[0]));
}

TEST(TrainingStepGpu, a_captured_step_skips_a_batch_that_is_not_finite_and_captures_a_shape_that_changes) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  const SmallVoice voice;
  const at::Device gpu(at::kCUDA, 0);
  StepSettings settings;
  settings.device = gpu;
  settings.policy.bfloat16 = true;
  settings.policy.capture = true;
  TrainingStep step(voice, settings);
  const TensorMap good = make_batch(gpu, 1);
  step.capture({signature_of(good, false)});
  RetraceMonitor monitor({signature_of(good, false)});
  const auto train_on = [&](const TensorMap& batch) {
    step.begin(1e-3);
    step.add(batch, 5);
    step.update();
    return step.values();
  };
  train_on(good);
  const at::Tensor before = step.states().front().master.clone();
  TensorMap planted = make_batch(gpu, 2);
  planted["mel"][1][3][2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(train_on(planted).skipped_in_a_row, 1);
  EXPECT_TRUE(step.states().front().master.equal(before));
  EXPECT_EQ(train_on(good).skipped_total, 1);
  EXPECT_EQ(monitor.see(signature_of(good, false)), std::nullopt);
  EXPECT_EQ(step.captures(), 1);
  const TensorMap longer = make_batch(gpu, 3, 12, 48);
  EXPECT_EQ(monitor.see(signature_of(longer, false)), "mel frames 48 instead of 40");
  EXPECT_TRUE(std::isfinite(train_on(longer).losses[0]));
  EXPECT_EQ(step.captures(), 2);
  EXPECT_EQ(monitor.retraces(), 1);
}

}  // namespace
}  // namespace myxtts
