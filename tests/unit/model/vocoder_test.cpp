#include "model/vocoder.h"

#include "base/random.h"
#include "model/discriminators.h"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

namespace myxtts {
namespace {

// A few tones and some noise.
std::vector<float> sound(size_t samples, uint64_t seed) {
  Random random(seed);
  std::vector<float> made;
  for (size_t i = 0; i < samples; ++i) {
    const double t = static_cast<double>(i);
    made.push_back(static_cast<float>(0.3 * std::sin(0.05 * t) + 0.2 * std::sin(0.31 * t) + 0.02 * random.normal()));
  }
  return made;
}

at::Tensor rows_of_sound(int64_t rows, int64_t samples) {
  at::Tensor all = at::empty({rows, samples});
  for (int64_t row = 0; row < rows; ++row) {
    all[row].copy_(at::tensor(sound(static_cast<size_t>(samples), static_cast<uint64_t>(row) + 1)));
  }
  return all;
}

TEST(Spectrum, comes_back_as_the_samples_it_was_made_of) {
  for (const Frames& frames : {Frames{1024, 256, 1024, -384}, Frames{1024, 256, 1024, -512},
                               Frames{400, 160, 400, -200}, Frames{1920, 480, 1920, -720}, centred_frames(512, 128)}) {
    const int64_t samples = 40 * frames.hop_length, count = frames.first == -frames.n_fft / 2 ? 41 : 40;
    const at::Tensor wave = rows_of_sound(2, samples);
    const SpectrumTables tables = make_spectrum_tables(frames, at::kCPU);
    const at::Tensor back = from_spectrum(tables, spectrum(tables, wave, count), samples);
    EXPECT_LT((back - wave).abs().max().item<float>(), 1e-4F) << frames.n_fft;
    const at::NoGradGuard no_gradients;  // by FFT
    const at::Tensor faster = from_spectrum(tables, spectrum(tables, wave, count), samples);
    EXPECT_LT((faster - back).abs().max().item<float>(), 1e-5F) << frames.n_fft;
  }
}

constexpr Frames frames = {1024, 256, 1024, -384};

VocoderSpec small_spec() {
  VocoderSpec spec;
  spec.size = {"test", 2, 64, 96};
  spec.frames = frames;
  spec.mel_mean = -5, spec.mel_std = 2;
  return spec;
}

TEST(VocoderModel, sizes_have_the_documented_number_of_parameters) {
  const std::map<std::string_view, double> documented = {{"tiny", 1.2e6}, {"base", 13.4e6}};
  for (const VocoderSize& size : vocoder_sizes) {
    VocoderSpec spec = small_spec();
    spec.size = size;
    EXPECT_NEAR(static_cast<double>(Vocoder(spec).layout().parameters()), documented.at(size.name),
                0.05 * documented.at(size.name));
  }
}

TEST(VocoderModel, fused_and_plain_agree_and_every_parameter_has_a_gradient) {
  const int64_t samples = 20 * 256;
  const at::Tensor wave = rows_of_sound(3, samples);
  const SpectrumTables tables = make_spectrum_tables(frames, at::kCPU);
  const at::Tensor input = at::randn({3, 20, 80}) * 2 - 5;
  std::vector<at::Tensor> outputs, gradients;
  for (const bool fused : {true, false}) {
    const Vocoder vocoder(small_spec(), fused);
    const Weights weights = make_weights(vocoder.layout(), vocoder.layout().initial(1), true);
    const at::Tensor made = vocoder.waveform(weights, tables, input, samples);
    ASSERT_EQ(made.sizes(), wave.sizes());
    add_gradients((made - wave).square().mean(), weights);
    outputs.push_back(made.detach()), gradients.push_back(weights.gradients);
    const std::vector<at::Tensor> views = vocoder.layout().views(weights.gradients);
    for (size_t i = 0; i < views.size(); ++i) {
      EXPECT_GT(views[i].norm().item<float>(), 0) << vocoder.layout().specs()[i].name;
    }
  }
  EXPECT_LT((outputs[0] - outputs[1]).abs().max().item<float>(), 1e-5F);
  EXPECT_LT((gradients[0] - gradients[1]).norm().item<double>() / gradients[1].norm().item<double>(), 1e-5);
}

TEST(VocoderModel, padding_changes_nothing) {
  const Vocoder vocoder(small_spec());
  const Weights weights = make_weights(vocoder.layout(), vocoder.layout().initial(1), false);
  const SpectrumTables tables = make_spectrum_tables(frames, at::kCPU);
  const at::NoGradGuard no_gradients;
  const at::Tensor mel = at::randn({2, 30, 80}) * 2 - 5;
  const at::Tensor padded = at::cat({mel, at::full({2, 7, 80}, 9.0)}, 1);
  const at::Tensor lengths = at::tensor({30, 22}, at::kInt);
  const at::Tensor made = vocoder.waveform(weights, tables, padded, 37 * 256, {}, lengths);
  for (int64_t row = 0; row < 2; ++row) {
    const int64_t length = lengths[row].item<int>();
    const at::Tensor alone =
        vocoder.waveform(weights, tables, mel.narrow(0, row, 1).narrow(1, 0, length), length * 256);
    EXPECT_LT((made[row].narrow(0, 0, length * 256) - alone[0]).abs().max().item<float>(), 1e-5F) << row;
  }
}

TEST(VocoderModel, a_frame_is_heard_in_its_neighbourhood_alone) {
  const Vocoder vocoder(small_spec());
  const Weights weights = make_weights(vocoder.layout(), vocoder.layout().initial(1), false);
  const SpectrumTables tables = make_spectrum_tables(frames, at::kCPU);
  at::Tensor mel = at::randn({1, 60, 80}) - 5;
  const at::NoGradGuard no_gradients;
  const at::Tensor before = vocoder.waveform(weights, tables, mel, 60 * 256);
  mel[0][50] += 1;
  const at::Tensor changed = (vocoder.waveform(weights, tables, mel, 60 * 256) - before)[0].abs();
  // Three convolutions reach 3 frames each, and a window one and a half more.
  EXPECT_EQ(changed.narrow(0, 0, (50 - 11) * 256).max().item<float>(), 0);
  EXPECT_GT(changed.narrow(0, 50 * 256, 256).max().item<float>(), 0);
}

TEST(Discriminators, each_has_a_view_of_its_own_and_every_parameter_a_gradient) {
  const Discriminators discriminators;
  const DiscriminatorTables tables = Discriminators::make_tables(at::kCPU);
  const Weights weights = make_weights(discriminators.layout(), discriminators.layout().initial(1), true);
  const at::Tensor real = rows_of_sound(2, 4096), made = at::randn({2, 4096}) * 0.1;
  const auto judge = [&](const at::Tensor& samples) {
    return discriminators.judge(weights, samples, Discriminators::spectra(tables, samples));
  };
  const std::vector<Judgement> of_real = judge(real), of_made = judge(made);
  ASSERT_EQ(of_real.size(), Discriminators::periods() + Discriminators::windows().size());
  for (const Judgement& one : of_real) EXPECT_EQ(one.features.size(), 5U);
  // Where the hinges of both sides are open, the last biases' gradients cancel in the discriminators' own loss.
  add_gradients(discriminator_loss(judge(at::cat({real, made}))) + adversarial_loss(of_made), weights);
  const std::vector<at::Tensor> views = discriminators.layout().views(weights.gradients);
  for (size_t i = 0; i < views.size(); ++i) {
    EXPECT_GT(views[i].norm().item<float>(), 0) << discriminators.layout().specs()[i].name;
  }
  EXPECT_EQ(feature_loss(of_real, of_real).item<float>(), 0);
  EXPECT_GT(feature_loss(of_real, of_made).item<float>(), 0);
}

}  // namespace
}  // namespace myxtts
