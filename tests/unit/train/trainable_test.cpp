// The step, its optimisers and checkpoints with something that is not a voice: a toy GAN of two parameter groups.
#include "train/trainable.h"

#include "device/device.h"
#include "train/checkpoint.h"
#include "train/step.h"

#include <filesystem>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

// The generator maps noise to numbers, the discriminator tells them from the batch's, whose mean is 3. Least-squares
// losses; each group has an optimiser of its own.
class ToyGan : public Trainable {
 public:
  ToyGan() {
    discriminator_.add("discriminator.in", {8, 1}, 0.5);
    discriminator_.add("discriminator.bias", {8}, 0);
    discriminator_.add("discriminator.out", {1, 8}, 0.5);
    discriminator_.arrange();
    generator_.add("generator.scale", {1, 1}, 0.1);
    generator_.add("generator.shift", {1}, 0);
    generator_.arrange();
  }

  std::vector<std::string> arrays() const override { return {"mel"}; }
  std::vector<ParameterGroup> groups() const override {
    OptimizerSettings slow, fast;
    slow.weight_decay = fast.weight_decay = 0;
    slow.beta1 = 0.5, fast.beta1 = 0.8, fast.ema_decay = 0.9;
    return {{"discriminator", &discriminator_, slow, 1, {"loss_discriminator"}},
            {"generator", &generator_, fast, 0.5, {"loss", "loss_distance"}}};
  }
  TensorMap example(const StepSignature& shape, at::Device device) const override {
    return {{"mel", at::zeros({shape.rows, shape.mel_frames, 1}, at::TensorOptions(at::kFloat).device(device))}};
  }
  TensorMap make_noise(const TensorMap& batch) const override { return {{"noise", at::empty_like(batch["mel"])}}; }
  void draw_noise(TensorMap& noise, at::Generator generator, const RowPlace&) const override {
    noise["noise"].normal_(0, 1, generator);
  }
  Counts counts(std::span<const RowLength>) const override { return {}; }
  std::vector<at::Tensor> losses(size_t group, std::span<const Weights> weights, const TensorMap& batch,
                                 const TensorMap& noise, const Inspect&) const override {
    const at::Tensor made = at::linear(noise["noise"], weights[1][0], weights[1][1]);
    if (group == 0) {
      return {(judge(weights[0], batch["mel"]) - 1).square().mean() + judge(weights[0], made.detach()).square().mean()};
    }
    return {(judge(weights[0], made) - 1).square().mean(), (made.mean() - batch["mel"].mean()).abs()};
  }
  bool overwrites_gradients(const Weights&) const override { return false; }
  std::map<std::string, std::string> metadata() const override { return {{"toy", "gan"}}; }
  Samples samples(std::span<const Weights>, const Corpus&, const BatchPlan&, at::Device) const override { return {}; }

 private:
  static at::Tensor judge(const Weights& weights, const at::Tensor& x) {
    return at::linear(at::tanh(at::linear(x, weights[0], weights[1])), weights[2]);
  }

  ParameterLayout discriminator_, generator_;
};

TensorMap real_batch(uint64_t seed, at::Device device = at::kCPU) {
  at::Tensor values = at::empty({16, 4, 1});
  values.normal_(3, 0.2, seeded_generator(at::kCPU, seed));
  return {{"mel", values.to(device)}};
}

void train_on(TrainingStep& step, uint64_t first, uint64_t count, at::Device device = at::kCPU) {
  for (uint64_t i = first; i < first + count; ++i) {
    step.begin(0.02);
    step.add(real_batch(i, device), i);
    step.update();
  }
}

TEST(Trainable, two_groups_with_their_own_optimisers_learn_against_each_other) {
  const ToyGan gan;
  TrainingStep step(gan, {});
  EXPECT_EQ(step.loss_names(), (std::vector<std::string>{"loss_discriminator", "loss", "loss_distance"}));
  train_on(step, 0, 1);
  const StepValues first = step.values();
  EXPECT_GT(first.losses[2], 2) << "the generator starts far from the mean of 3";
  EXPECT_EQ(first.gradient_norm.size(), 2U);
  train_on(step, 1, 600);
  EXPECT_LT(step.values().losses[2], 0.7);
  EXPECT_EQ(step.states()[0].updates.item<float>(), 601);
  EXPECT_EQ(step.states()[1].updates.item<float>(), 601);
}

TEST(Trainable, the_second_group_sees_the_first_one_updated_unless_batches_are_accumulated) {
  const ToyGan gan;
  StepSettings settings;
  TrainingStep alone(gan, settings);
  const at::Tensor before = alone.states()[0].master.clone();
  alone.begin(0.02);
  alone.add(real_batch(1), 1);
  EXPECT_FALSE(alone.states()[0].master.equal(before));
  settings.accumulation = 2;
  TrainingStep accumulated(gan, settings);
  accumulated.begin(0.02);
  accumulated.add(real_batch(1), 1);
  EXPECT_TRUE(accumulated.states()[0].master.equal(before));
  accumulated.add(real_batch(2), 2);
  accumulated.update();
  EXPECT_FALSE(accumulated.states()[0].master.equal(before));
}

TEST(Trainable, a_checkpoint_of_two_groups_resumes_to_the_bit) {
  const fs::path folder = fs::path(testing::TempDir()) / "gan";
  fs::create_directories(folder);
  const ToyGan gan;
  TrainingStep whole(gan, {});
  train_on(whole, 0, 20);
  TrainingStep half(gan, {});
  train_on(half, 0, 10);
  save_checkpoint(folder / "half.safetensors", {gan.metadata(), {}}, half.groups(), half.states());
  StepSettings other_seed;
  other_seed.seed = 9;
  TrainingStep resumed(gan, other_seed);
  load_checkpoint(folder / "half.safetensors", resumed.groups(), resumed.states());
  resumed.reload();
  train_on(resumed, 10, 10);
  for (size_t group = 0; group < 2; ++group) {
    EXPECT_TRUE(resumed.states()[group].master.equal(whole.states()[group].master)) << group;
    EXPECT_TRUE(resumed.states()[group].ema.equal(whole.states()[group].ema)) << group;
  }
  EXPECT_EQ(read_checkpoint_header(folder / "half.safetensors").metadata.at("toy"), "gan");
  fs::remove_all(folder);
}

TEST(TrainableGpu, a_captured_gan_learns_as_one_that_is_not_captured) {
  if (device_count() == 0 || !at::globalContext().hasCUDA()) GTEST_SKIP() << "no GPU";
  const ToyGan gan;
  std::vector<at::Tensor> weights;
  for (const bool capture : {false, true}) {
    StepSettings settings;
    settings.device = at::Device(at::kCUDA, 0);
    settings.policy.capture = capture;
    TrainingStep step(gan, settings);
    if (capture) step.capture({signature_of(real_batch(0, settings.device), false)});
    train_on(step, 0, 50, settings.device);
    weights.push_back(at::cat({step.states()[0].master, step.states()[1].master}).cpu());
    EXPECT_EQ(step.captures(), capture ? 1 : 0);
  }
  EXPECT_TRUE(weights[1].allclose(weights[0], 1e-4, 1e-5));
}

}  // namespace
}  // namespace myxtts
