#include "features/cpu/griffin_lim.h"

#include "base/error.h"
#include "base/random.h"
#include "features/cpu/griffin_lim_kernel.h"
#include "features/mel.h"

#include <cmath>
#include <limits>
#include <numbers>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

// Synthetic speech: harmonics under two moving formants, with a pause and breath noise.
std::vector<float> voice(int sample_rate, double seconds) {
  std::vector<float> samples(static_cast<size_t>(sample_rate * seconds));
  Random random(5);
  double phase = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const double t = static_cast<double>(i) / sample_rate, pitch = 130 + 40 * std::sin(2.2 * t);
    phase += 2 * std::numbers::pi * pitch / sample_rate;
    const double first = 500 + 250 * std::sin(3.1 * t), second = 1700 + 600 * std::cos(1.7 * t);
    double x = 0;
    for (int h = 1; h * pitch < 6500 && 2 * h * pitch < sample_rate; ++h) {
      const double near_first = (h * pitch - first) / 150, near_second = (h * pitch - second) / 250;
      x += (0.02 + std::exp(-near_first * near_first) + 0.4 * std::exp(-near_second * near_second)) *
           std::sin(h * phase);
    }
    const double loud = std::clamp(std::sin(4.0 * t) + 0.6, 0.0, 1.0);
    samples[i] = static_cast<float>(loud * 0.1 * x + 0.003 * random.normal());
  }
  return samples;
}

double mean_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(static_cast<double>(a[i]) - b[i]);
  return sum / static_cast<double>(a.size());
}

double rms(std::span<const float> samples) {
  double sum = 0;
  for (const float x : samples) sum += static_cast<double>(x) * x;
  return std::sqrt(sum / static_cast<double>(samples.size()));
}

bool all_finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

std::vector<MelSpec> presets_that_can_be_heard() {
  std::vector<MelSpec> presets;
  for (MelSpec preset : mel_presets()) {
    if (preset.range != MelRange::min_max) presets.push_back(preset);
  }
  MelSpec odd = mel_preset("hifigan");  // lengths without common divisors
  odd.name = "odd", odd.n_fft = 600, odd.win_length = 500, odd.hop_length = 123, odd.n_mels = 37;
  presets.push_back(odd);
  odd.name = "odd_end", odd.padding = MelPadding::end;
  presets.push_back(odd);
  return presets;
}

class SoundOf : public testing::TestWithParam<MelSpec> {};

TEST_P(SoundOf, a_mel_has_nearly_that_mel_again) {
  const MelSpec& spec = GetParam();
  const std::vector<float> samples = voice(spec.sample_rate, 2.0);
  MelCpu cpu(spec);
  const Mel mel = cpu.compute(samples);
  const std::vector<float> sound = griffin_lim(spec, mel.values, mel.frames);
  ASSERT_EQ(static_cast<int64_t>(sound.size()), griffin_lim_samples(spec, mel.frames));
  ASSERT_TRUE(all_finite(sound));
  EXPECT_NEAR(rms(sound) / rms(samples), 1.0, 0.15);
  Mel again = cpu.compute(sound);
  ASSERT_EQ(again.frames, mel.frames);
  Mel expected = mel;
  if (spec.log == MelLog::none) {  // compare logarithms, as for the other presets
    for (Mel* each : {&again, &expected}) {
      for (float& x : each->values) x = std::log(std::max(x, 1e-5F));
    }
  }
  double unit = spec.std;  // scale to natural logarithms of magnitudes
  if (spec.log == MelLog::log10) unit *= std::numbers::ln10;
  if (spec.range == MelRange::whisper) unit *= 4;
  const double difference = mean_difference(again.values, expected.values) * unit / spec.mel_power;
  EXPECT_LT(difference, 0.1);
}

TEST_P(SoundOf, odd_mels_is_finite) {
  const MelSpec& spec = GetParam();
  MelCpu cpu(spec);
  for (const int64_t frames : {0, 1, 2, 3, 9}) {
    const size_t count = static_cast<size_t>(frames * spec.n_mels);
    for (const float value : {0.0F, -1e30F, 1e30F, 100.0F, std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      const std::vector<float> sound = griffin_lim(spec, std::vector<float>(count, value), frames, {.iterations = 5});
      EXPECT_EQ(static_cast<int64_t>(sound.size()), griffin_lim_samples(spec, frames));
      EXPECT_TRUE(all_finite(sound)) << frames << " frames of " << value;
    }
  }
  const Mel silence = cpu.compute(std::vector<float>(20000));
  const std::vector<float> sound = griffin_lim(spec, silence.values, silence.frames);
  EXPECT_TRUE(all_finite(sound));
  if (spec.range != MelRange::whisper) {  // the whisper range is relative to the loudest value, so silence has no level
    EXPECT_LT(rms(sound), 1e-3);
  }
}

TEST_P(SoundOf, a_seed_is_the_same_for_any_number_of_threads) {
  const MelSpec& spec = GetParam();
  const Mel mel = MelCpu(spec).compute(voice(spec.sample_rate, 0.7));
  const auto sound = [&](uint64_t seed, size_t threads) {
    return griffin_lim(spec, mel.values, mel.frames, {.iterations = 4, .seed = seed, .threads = threads});
  };
  const std::vector<float> one = sound(7, 1);
  for (const size_t threads : {0UL, 2UL, 3UL, 100UL}) EXPECT_EQ(sound(7, threads), one) << threads;
  EXPECT_NE(sound(8, 1), one);
}

INSTANTIATE_TEST_SUITE_P(GriffinLim, SoundOf, testing::ValuesIn(presets_that_can_be_heard()),
                         [](const auto& preset) { return preset.param.name; });

TEST(GriffinLim, is_as_long_as_the_frames) {
  EXPECT_EQ(griffin_lim_samples(mel_preset("hifigan"), 10), 2560);
  EXPECT_EQ(griffin_lim_samples(mel_preset("tacotron2"), 10), 2304);
  EXPECT_EQ(griffin_lim_samples(mel_preset("whisper"), 10), 1600);
  for (const MelSpec& spec : presets_that_can_be_heard()) EXPECT_EQ(spec.frames(griffin_lim_samples(spec, 10)), 10);
}

TEST(GriffinLim, momentum_and_iterations_bring_the_mel_nearer) {
  const MelSpec& spec = mel_preset("hifigan");
  MelCpu cpu(spec);
  const Mel mel = cpu.compute(voice(spec.sample_rate, 2.0));
  const auto difference = [&](const GriffinLimOptions& options) {
    return mean_difference(cpu.compute(griffin_lim(spec, mel.values, mel.frames, options)).values, mel.values);
  };
  const double plain = difference({.iterations = 60, .momentum = 0}), fast = difference({});
  EXPECT_LT(fast, plain);
  EXPECT_LT(plain, difference({.iterations = 2, .momentum = 0}));
}

TEST(GriffinLim, refuses_what_cannot_be_undone_or_does_not_fit) {
  EXPECT_THROW(griffin_lim(mel_preset("tf_signal"), {}, 0), Error);
  EXPECT_THROW(griffin_lim(mel_preset("hifigan"), std::vector<float>(81), 1), Error);
  EXPECT_THROW(griffin_lim(mel_preset("hifigan"), std::vector<float>(80), 1, {.iterations = -1}), Error);
}

TEST(GriffinLim, windows_that_leave_gaps_leave_silence) {
  MelSpec spec = mel_preset("hifigan");
  spec.hop_length = spec.n_fft;
  for (const int win_length : {1, 100}) {
    spec.win_length = win_length;
    const std::vector<float> sound = griffin_lim(spec, std::vector<float>(400, 1.0F), 5);
    EXPECT_TRUE(all_finite(sound));
    EXPECT_EQ(sound.front(), 0.0F);
  }
}

#if defined(__x86_64__)
TEST(GriffinLimKernel, with_and_without_avx2_is_equal_to_the_last_bit) {
  if (!has_avx2()) GTEST_SKIP() << "this CPU has no AVX2";
  for (const MelSpec& spec : presets_that_can_be_heard()) {
    const GriffinLimTables tables(spec);
    const auto bins = static_cast<size_t>(spec.bins());
    Random random(3);
    std::vector<EightFloats> mel(static_cast<size_t>(spec.n_mels)), scratch(tables.scratch_values());
    std::vector<float> signal(tables.strip_samples());
    for (EightFloats& x : mel) {
      for (float& lane : x.lane) lane = static_cast<float>(random.uniform());
    }
    for (float& x : signal) x = static_cast<float>(random.normal());
    const auto run = [&](const GriffinLimKernel& kernel) {
      std::vector<EightFloats> magnitude(bins), previous(2 * bins);
      kernel.magnitudes(tables, mel.data(), magnitude.data(), scratch.data());
      std::vector<float> strip(tables.strip_samples());
      for (int i = 0; i < 2; ++i) {
        kernel.step(tables, signal.data(), magnitude.data(), 0.5F, previous.data(), strip.data(), scratch.data());
      }
      return strip;
    };
    EXPECT_EQ(run(any_cpu::griffin_lim_kernel), run(avx2::griffin_lim_kernel)) << spec.name;
  }
}
#endif

}  // namespace
}  // namespace myxtts
