#include "train/vocoder_trainable.h"

#include "base/random.h"
#include "device/device.h"
#include "features/mel.h"
#include "train/step.h"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace myxtts {
namespace {

std::vector<float> sound(uint64_t seed) {
  Random random(seed);
  std::vector<float> made;
  for (int i = 0; i < crop_samples; ++i) {
    made.push_back(static_cast<float>(0.3 * std::sin(0.05 * i) + 0.2 * std::sin(0.31 * i) + 0.02 * random.normal()));
  }
  return made;
}

TEST(LogMel, is_that_of_the_features) {
  for (const char* name : {"hifigan", "matcha", "tacotron2", "bigvgan_24k", "vocos", "xtts", "espnet"}) {
    const MelSpec& spec = mel_preset(name);
    const std::vector<float> wave = sound(3);
    const Mel want = mel_reference(spec, wave);
    const at::Tensor got = log_mel(make_mel_tables(spec, at::kCPU), at::tensor(wave).unsqueeze(0))[0];
    ASSERT_EQ(got.size(0), want.frames) << name;
    EXPECT_LT((got - at::tensor(want.values).view_as(got)).abs().max().item<float>(), 5e-3F) << name;
  }
}

TEST(Loudness, grows_with_what_is_added_and_with_what_is_missing) {
  const LoudnessTables tables = make_loudness_tables(22050, at::kCPU);
  const at::Tensor real = at::stack({at::tensor(sound(1)), at::tensor(sound(2))});
  const at::Tensor noise = at::randn_like(real);
  const auto distance = [&](const at::Tensor& made) {
    return loudness_distance(tables, made, real).mean().item<float>();
  };
  EXPECT_EQ(distance(real), 0);
  EXPECT_LT(distance(real * 1.05), 0.02);  // hardly louder is hardly heard
  EXPECT_LT(distance(real + 0.01 * noise), distance(real + 0.05 * noise));
  EXPECT_LT(distance(real + 0.05 * noise), distance(noise));
  EXPECT_GT(distance(at::zeros_like(real)), 0.3);
  EXPECT_GT(distance(real * 2), distance(real / 2));
}

class VocoderStep : public testing::Test {
 protected:
  VocoderStep() {
    spec = vocoder_spec("tiny", mel, -5, 2);
    spec.size = {"test", 2, 64, 96, 8};
  }
  TensorMap batch(at::Device device, uint64_t number) const {
    std::vector<at::Tensor> samples, mels;
    for (uint64_t row = 0; row < 2; ++row) {
      const std::vector<float> wave = sound(number * 2 + row);
      samples.push_back(at::tensor(wave));
      const Mel computed = MelCpu(mel).compute(wave);
      mels.push_back(at::tensor(computed.values).view({computed.frames, computed.n_mels}));
    }
    return {{"samples", at::stack(samples).to(device)},
            {"mel", at::stack(mels).to(device)},
            {"mel_lengths", at::full({2}, mels[0].size(0), at::TensorOptions(at::kInt).device(device))}};
  }
  // Losses after each of some steps.
  std::vector<std::vector<double>> train(at::Device device, bool half, bool adversarial = true) const {
    const VocoderTrainable trainable(spec, mel, {}, true, device, {adversarial, {}, {}});
    StepSettings settings;
    settings.device = device;
    settings.policy.capture = device.is_cuda(), settings.policy.bfloat16 = half, settings.policy.fused = true;
    TrainingStep step(trainable, settings);
    step.capture({signature_of(batch(device, 0), false)});
    std::vector<std::vector<double>> losses;
    for (uint64_t i = 0; i < 4; ++i) {
      step.begin(1e-3);
      step.add(batch(device, i), i);
      step.update();
      losses.push_back(step.values().losses);
    }
    return losses;
  }

  MelSpec mel = mel_preset("hifigan");
  VocoderSpec spec;
};

TEST_F(VocoderStep, learns_and_is_the_same_twice) {
  const std::vector<std::vector<double>> once = train(at::kCPU, false);
  EXPECT_LT(once.back()[1], once.front()[1]);
  EXPECT_EQ(train(at::kCPU, false), once);
}

TEST_F(VocoderStep, learns_from_distances_without_discriminators) {
  const std::vector<std::vector<double>> once = train(at::kCPU, false, false);
  ASSERT_EQ(once.front().size(), 3U);
  for (size_t loss = 0; loss < 3; ++loss) EXPECT_LT(once.back()[loss], once.front()[loss]) << loss;
  EXPECT_EQ(train(at::kCPU, false, false), once);
}

TEST_F(VocoderStep, on_a_gpu_is_the_same_twice_and_near_the_cpu) {
  if (device_count() == 0) GTEST_SKIP() << "no GPU";
  const at::Device gpu(at::kCUDA, 0);
  const std::vector<std::vector<double>> want = train(at::kCPU, false), got = train(gpu, true);
  EXPECT_EQ(train(gpu, true), got);
  const std::vector<std::vector<double>> alone = train(gpu, true, false);
  EXPECT_EQ(train(gpu, true, false), alone);
  EXPECT_LT(alone.back()[0], alone.front()[0]);
  for (size_t i = 0; i < want.size(); ++i) {
    for (size_t k = 0; k < want[i].size(); ++k) EXPECT_NEAR(got[i][k], want[i][k], 0.05 * want[i][k]) << i << " " << k;
  }
}

}  // namespace
}  // namespace myxtts
