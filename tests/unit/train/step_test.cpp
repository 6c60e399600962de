#include "train/step.h"

#include "base/error.h"
#include "device/device.h"
#include "model/attention.h"

#include <limits>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

namespace myxtts {
namespace {

VoiceSpec small_voice() {
  VoiceSpec spec;
  spec.size = {"test", 1, 64, 2, 64};
  spec.vocabulary = 20;
  spec.n_mels = 16;
  return spec;
}

VoiceBatch make_batch(at::Device device, uint64_t seed, int64_t tokens = 12, int64_t frames = 40) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const int64_t rows = 3;
  return {at::randint(2, 20, {rows, tokens}, generator, at::TensorOptions(at::kInt)).to(device),
          at::tensor({12, 5, 9}, at::kInt).to(device), at::tensor({40, 30, 33}, at::kInt).to(device),
          at::randn({rows, frames, 16}, generator).to(device)};
}

TEST(TrainingStep, skips_one_update_for_a_batch_that_is_not_finite_and_nothing_else) {
  const Voice voice(small_voice());
  TrainingStep step(voice, voice.layout().initial(1), {});
  const auto train_on = [&](const VoiceBatch& batch) {
    step.add(batch, 5);
    step.update(1e-3);
    return step.figures();
  };
  EXPECT_EQ(train_on(make_batch(at::kCPU, 1)).skipped_total, 0);
  const at::Tensor before = step.state().master.clone(), moment = step.state().first_moment.clone();
  VoiceBatch planted = make_batch(at::kCPU, 2);
  planted.mel[1][3][2] = std::numeric_limits<float>::quiet_NaN();
  const StepFigures skipped = train_on(planted);
  EXPECT_EQ(skipped.skipped_total, 1);
  EXPECT_EQ(skipped.skipped_in_a_row, 1);
  EXPECT_TRUE(step.state().master.equal(before));
  EXPECT_TRUE(step.state().first_moment.equal(moment));
  const StepFigures after = train_on(make_batch(at::kCPU, 3));
  EXPECT_EQ(after.skipped_total, 1);
  EXPECT_EQ(after.skipped_in_a_row, 0);
  EXPECT_TRUE(std::isfinite(after.loss));
  EXPECT_FALSE(step.state().master.equal(before));
}

TEST(TrainingStep, accumulates_the_gradients_of_all_weights_over_its_batches) {
  const Voice voice(small_voice());
  // The first moment of the first update is a tenth of the gradient.
  const auto moment_of = [&](const std::vector<uint64_t>& batches) {
    StepSettings settings;
    settings.accumulation = static_cast<int64_t>(batches.size());
    settings.optimizer.gradient_clip = 1e9;
    TrainingStep step(voice, voice.layout().initial(1), settings);
    for (const uint64_t batch : batches) step.add(make_batch(at::kCPU, batch), 5);
    step.update(1e-3);
    return step.state().first_moment.clone();
  };
  const at::Tensor both = moment_of({1, 2}), mean = (moment_of({1}) + moment_of({2})) / 2;
  for (const ParameterSpec& spec : voice.layout().specs()) {
    const at::Tensor found = both.narrow(0, spec.first, spec.elements);
    EXPECT_TRUE(found.allclose(mean.narrow(0, spec.first, spec.elements), 1e-4, 1e-7)) << spec.name;
  }
}

TEST(TrainingStep, names_what_is_not_finite_when_it_is_inspected) {
  const Voice voice(small_voice());
  StepSettings settings;
  settings.inspect = true;
  TrainingStep step(voice, voice.layout().initial(1), settings);
  step.add(make_batch(at::kCPU, 1), 5);
  VoiceBatch planted = make_batch(at::kCPU, 2);
  planted.mel[1][3][2] = std::numeric_limits<float>::infinity();
  try {
    step.add(planted, 5);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("mel [3, 40, 16] is not finite: 1 of 1920 values"), std::string::npos)
        << error.what();
  }
}

TEST(TrainingStep, names_where_an_operation_failed_when_it_is_inspected) {
  const Voice voice(small_voice());
  StepSettings settings;
  settings.inspect = true;
  TrainingStep step(voice, voice.layout().initial(1), settings);
  VoiceBatch planted = make_batch(at::kCPU, 2);
  planted.text_lengths = planted.text_lengths.narrow(0, 0, 2);  // one row fewer
  try {
    step.add(planted, 5);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("after mel [3, 40, 16]"), std::string::npos) << error.what();
  }
}

TEST(TrainingStep, figures_that_were_sent_are_those_of_their_step) {
  const Voice voice(small_voice());
  TrainingStep step(voice, voice.layout().initial(1), {});
  step.add(make_batch(at::kCPU, 1), 5);
  step.update(1e-3);
  const double loss = step.figures().loss;
  step.send_figures();
  step.add(make_batch(at::kCPU, 2), 6);
  step.update(1e-3);
  EXPECT_TRUE(step.figures_arrived());
  EXPECT_EQ(step.sent_figures().loss, loss);
  EXPECT_NE(step.figures().loss, loss);
}

bool no_gpu() { return device_count() == 0 || !at::globalContext().hasCUDA(); }

TEST(TrainingStepGpu, recorded_and_not_recorded_are_equal_to_rounding_for_100_steps) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  const Voice voice(small_voice());
  const at::Device gpu(at::kCUDA, 0);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    std::vector<std::vector<double>> losses;
    std::vector<at::Tensor> weights;
    for (const bool record : {false, true}) {
      StepSettings settings;
      settings.device = gpu;
      settings.type = type;
      settings.record = record;
      TrainingStep step(voice, voice.layout().initial(1), settings);
      losses.emplace_back();
      for (uint64_t i = 0; i < 100; ++i) {
        step.add(make_batch(gpu, i % 10), i);
        step.update(1e-3);
        losses.back().push_back(step.figures().loss);
      }
      weights.push_back(step.state().master.cpu());
      EXPECT_EQ(step.recordings(), record ? 1 : 0);
    }
    if (type == at::kBFloat16 && gpu_attends()) {
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
  if (no_gpu() || !gpu_attends()) GTEST_SKIP() << "no GPU of the Hopper kind";
  VoiceSpec spec = small_voice();
  spec.size = {"test", 2, 192, 3, 256};
  const Voice voice(spec);
  const at::Device gpu(at::kCUDA, 0);
  std::vector<at::Tensor> weights;
  for (int run = 0; run < 2; ++run) {
    StepSettings settings;
    settings.device = gpu;
    settings.type = at::kBFloat16;
    settings.record = true;
    TrainingStep step(voice, voice.layout().initial(1), settings);
    for (uint64_t i = 0; i < 200; ++i) {
      step.add(make_batch(gpu, i % 10), i);
      step.update(1e-3);
    }
    weights.push_back(step.state().master.cpu());
  }
  EXPECT_TRUE(weights[1].equal(weights[0]));
}

TEST(TrainingStepGpu, a_recorded_step_skips_a_batch_that_is_not_finite_and_records_a_shape_that_changes) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  const Voice voice(small_voice());
  const at::Device gpu(at::kCUDA, 0);
  StepSettings settings;
  settings.device = gpu;
  settings.type = at::kBFloat16;
  settings.record = true;
  TrainingStep step(voice, voice.layout().initial(1), settings);
  const VoiceBatch good = make_batch(gpu, 1);
  step.record({signature_of(good, false)});
  RetraceMonitor monitor({signature_of(good, false)});
  const auto train_on = [&](const VoiceBatch& batch) {
    step.add(batch, 5);
    step.update(1e-3);
    return step.figures();
  };
  train_on(good);
  const at::Tensor before = step.state().master.clone();
  VoiceBatch planted = make_batch(gpu, 2);
  planted.mel[1][3][2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(train_on(planted).skipped_in_a_row, 1);
  EXPECT_TRUE(step.state().master.equal(before));
  EXPECT_EQ(train_on(good).skipped_total, 1);
  EXPECT_EQ(monitor.see(signature_of(good, false)), std::nullopt);
  EXPECT_EQ(step.recordings(), 1);
  const VoiceBatch longer = make_batch(gpu, 3, 12, 48);
  EXPECT_EQ(monitor.see(signature_of(longer, false)), "mel frames 48 instead of 40");
  EXPECT_TRUE(std::isfinite(train_on(longer).loss));
  EXPECT_EQ(step.recordings(), 2);
  EXPECT_EQ(monitor.retraces(), 1);
}

}  // namespace
}  // namespace myxtts
