#include "train/gradient_buckets.h"

#include "base/clock.h"
#include "base/error.h"
#include "device/device.h"
#include "model/attention.h"
#include "train/device_sum.h"
#include "train/step.h"
#include "train/voice_trainable.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

namespace myxtts {
namespace {

void count(std::vector<int>& sums, const std::vector<Stretch>& due) {
  for (const Stretch& stretch : due) {
    for (int64_t i = stretch.first; i < stretch.end; ++i) ++sums[static_cast<size_t>(i)];
  }
}

TEST(Stretches, hold_every_element_once_in_whatever_order_they_come) {
  // Two stacks that end from the back, stretches apart, and what nobody names.
  const std::vector<Stretch> orders[] = {
      {{400, 500}, {300, 400}, {200, 300}, {100, 200}, {0, 100}}, {{500, 600}, {200, 300}, {100, 200}, {400, 500}}, {}};
  for (const auto& order : orders) {
    for (const int64_t enough : {1, 150, 10000}) {
      Stretches stretches(1000, enough);
      for (int repeat = 0; repeat < 2; ++repeat) {
        std::vector<int> sums(1000);
        stretches.begin();
        for (const Stretch& one : order) count(sums, stretches.add(one));
        count(sums, stretches.rest());
        EXPECT_EQ(sums, std::vector<int>(1000, 1)) << enough;
      }
    }
  }
}

TEST(Stretches, are_due_once_they_are_long_enough) {
  Stretches stretches(1000, 200);
  EXPECT_TRUE(stretches.add({400, 500}).empty());
  const auto due = stretches.add({300, 400});
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].first, 300);
  EXPECT_EQ(due[0].end, 500);
}

// As if there were a second rank with the same gradients.
class TwoAlike : public DeviceSum {
 public:
  void sum(const at::Tensor& values) override {
    const at::NoGradGuard no_gradients;
    at::Tensor(values).mul_(2);
    ++sums;
  }
  void sum_beside(const at::Tensor& values) override {
    sum(values);
    ++beside, joined = false;
  }
  void join() override { joined = true; }
  void abort() noexcept override {}

  int sums = 0, beside = 0;
  bool joined = true;
};

TEST(GradientBuckets, sum_views_with_the_gaps_behind_them_and_then_the_rest) {
  TwoAlike alike;
  const at::Tensor flat = at::ones({1000});
  GradientBuckets buckets(alike, flat, 256);
  for (int step = 1; step <= 2; ++step) {
    buckets.begin();
    buckets.ready(flat.narrow(0, 512, 200));
    buckets.ready(flat.narrow(0, 320, 192));
    EXPECT_EQ(alike.beside, step == 1 ? 1 : 4);
    EXPECT_FALSE(alike.joined);
    buckets.finish();
    EXPECT_TRUE(alike.joined);
    EXPECT_TRUE(flat.equal(at::full({1000}, 1 << step)));
  }
  buckets.begin();
  buckets.ready(flat.narrow(0, 0, 512));
  buckets.drop();
  EXPECT_TRUE(alike.joined);
}

class SmallVoice : public VoiceTrainable {
 public:
  explicit SmallVoice(const OptimizerSettings& optimizer) : VoiceTrainable(spec(), optimizer, true) {}

 private:
  static VoiceSpec spec() {
    VoiceSpec spec;
    spec.size = {"test", 1, 64, 2, 64};
    spec.vocabulary = 20, spec.n_mels = 16;
    return spec;
  }
};

TensorMap make_batch(uint64_t seed, at::Device device = at::kCPU) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return {{"tokens", at::randint(2, 20, {3, 12}, generator, at::TensorOptions(at::kInt)).to(device)},
          {"text_lengths", at::tensor({12, 5, 9}, at::kInt).to(device)},
          {"mel_lengths", at::tensor({40, 30, 33}, at::kInt).to(device)},
          {"mel", at::randn({3, 40, 16}, generator).to(device)}};
}

// A sum that is begun before a gradient is finished would double a part of it alone.
TEST(GradientBuckets, begin_sums_of_a_voice_with_gradients_that_are_finished) {
  const SmallVoice voice({});
  const ParameterLayout& layout = *voice.groups().front().layout;
  const TensorMap batch = make_batch(3);
  TensorMap noise = voice.make_noise(batch);
  voice.draw_noise(noise, seeded_generator(at::kCPU, 7), {});
  // Not the initial weights: with them the decoder is the identity.
  const at::Tensor flat =
      layout.initial(1) + at::randn({layout.elements()}, at::make_generator<at::CPUGeneratorImpl>(5)) * 0.05;
  const auto run = [&](const Weights& weights) {
    add_gradients(voice.losses(0, {&weights, 1}, batch, noise, {}).front(), weights);
  };
  const Weights plain = make_weights(layout, flat, true);
  run(plain);
  for (const int64_t enough : {1, 20000}) {
    TwoAlike alike;
    Weights summed = make_weights(layout, flat, true);
    summed.overwrite_trunk_gradients = voice.overwrites_gradients(summed);
    GradientBuckets buckets(alike, summed.gradients, enough);
    summed.gradient_ready = [&](const at::Tensor& gradient) { buckets.ready(gradient); };
    buckets.begin();
    run(summed);
    EXPECT_GT(alike.beside, 1);
    buckets.finish();
    EXPECT_LT((summed.gradients - plain.gradients * 2).norm().item<double>(),
              1e-5 * plain.gradients.norm().item<double>());
  }
}

// The first moment of the first update is a tenth of the gradient.
TEST(DeviceSum, of_a_step_has_every_finished_gradient_once) {
  OptimizerSettings optimizer;
  optimizer.clip_norm = 1e9;
  const SmallVoice voice(optimizer);
  for (const int64_t accumulation : {1, 2}) {
    std::vector<at::Tensor> moments;
    TwoAlike alike;
    for (DeviceSum* const sum : {static_cast<DeviceSum*>(nullptr), static_cast<DeviceSum*>(&alike)}) {
      StepSettings settings;
      settings.accumulation = accumulation;
      settings.device_sum = sum;
      TrainingStep step(voice, settings);
      step.begin(1e-3);
      for (int64_t i = 0; i < accumulation; ++i) step.add(make_batch(static_cast<uint64_t>(i)), 5);
      step.update();
      moments.push_back(step.states().front().first_moment.clone());
    }
    EXPECT_EQ(alike.sums, 1);
    EXPECT_EQ(alike.beside, accumulation == 1 ? 1 : 0);
    EXPECT_GT(moments[0].abs().max().item<double>(), 0);
    EXPECT_TRUE(moments[1].allclose(moments[0] * 2, 1e-4, 1e-7)) << accumulation;
  }
}

bool no_nccl() { return device_count() == 0 || device_sum_library().empty(); }
constexpr double timeout_s = 60;

TEST(DeviceSumGpu, of_one_rank_changes_nothing_and_throws_once_it_is_aborted) {
  if (no_nccl()) GTEST_SKIP() << "no GPU, or no NCCL";
  const auto sum = make_device_sum(make_device_sum_id(), 0, 1, 0, timeout_s);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor values = at::randn({1 << 20}, at::TensorOptions(type).device(at::kCUDA)), before = values.clone();
    sum->sum(values);
    sum->sum_beside(values);
    sum->join();
    EXPECT_TRUE(values.equal(before));
  }
  sum->abort();
  sum->abort();
  EXPECT_THROW(sum->sum(at::zeros({8}, at::TensorOptions(at::kCUDA))), Error);
}

TEST(DeviceSumGpu, of_one_rank_within_captured_steps_gives_the_same_bits_as_none) {
  if (no_nccl() || !gpu_has_fused_attention()) GTEST_SKIP() << "no GPU of the Hopper kind, or no NCCL";
  const SmallVoice voice({});
  const at::Device gpu(at::kCUDA, 0);
  for (const int64_t accumulation : {1, 2}) {
    std::vector<at::Tensor> weights;
    for (const bool summed : {false, true}) {
      const auto sum = summed ? make_device_sum(make_device_sum_id(), 0, 1, 0, timeout_s) : nullptr;
      StepSettings settings;
      settings.device = gpu;
      settings.policy.bfloat16 = settings.policy.capture = true;
      settings.accumulation = accumulation;
      settings.device_sum = sum.get();
      TrainingStep step(voice, settings);
      for (uint64_t i = 0; i < 50; ++i) {
        step.begin(1e-3);
        for (int64_t k = 0; k < accumulation; ++k) step.add(make_batch(i % 10, gpu), i);
        step.update();
      }
      weights.push_back(step.states().front().master.cpu());
    }
    EXPECT_TRUE(weights[1].equal(weights[0])) << accumulation;
  }
}

TEST(DeviceSumGpu, that_is_aborted_ends_once_its_graphs_are_destroyed) {
  if (no_nccl()) GTEST_SKIP() << "no GPU, or no NCCL";
  const SmallVoice voice({});
  const Stopwatch clock;
  {
    const auto sum = make_device_sum(make_device_sum_id(), 0, 1, 0, timeout_s);
    StepSettings settings;
    settings.device = at::Device(at::kCUDA, 0);
    settings.policy.bfloat16 = settings.policy.capture = true;
    settings.device_sum = sum.get();
    TrainingStep step(voice, settings);
    step.begin(1e-3);
    step.add(make_batch(1, settings.device), 1);
    step.update();
    sum->abort();
    step.values();
  }
  EXPECT_LT(clock.seconds(), timeout_s);
}

}  // namespace
}  // namespace myxtts
