#include "features/mel.h"

#include "base/error.h"
#include "base/random.h"
#include "features/cpu/mel_kernel.h"
#include "features/filter_bank.h"
#include "features/padding.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

std::vector<float> noise(size_t length, double level, uint64_t seed = 1) {
  std::vector<float> samples(length);
  Random random(seed);
  for (float& x : samples) x = static_cast<float>(level * random.normal());
  return samples;
}

std::vector<float> chirp(size_t length) {
  std::vector<float> samples(length);
  for (size_t i = 0; i < length; ++i) {
    const double t = static_cast<double>(i) / static_cast<double>(length);
    samples[i] = static_cast<float>(0.4 * std::sin(0.02 * static_cast<double>(i) * (1 + 40 * t)));
  }
  return samples;
}

// Impulses in digital silence, and quiet parts beside loud ones, where float rounding matters.
std::vector<float> clicks(size_t length) {
  std::vector<float> samples(length);
  for (size_t i = 1000; i < length; i += 1777) samples[i] = 0.6F;
  return samples;
}

std::vector<float> bursts(size_t length) {
  std::vector<float> samples = noise(length, 0.2);
  for (size_t i = 0; i < length; ++i) samples[i] *= i / 3000 % 2 == 0 ? 1.0F : 1e-4F;
  return samples;
}

class EveryPreset : public testing::TestWithParam<MelSpec> {};

TEST_P(EveryPreset, the_fast_version_agrees_with_the_reference) {
  const MelSpec& spec = GetParam();
  MelCpu fast(spec);
  for (const size_t length : {1UL, 2UL, 255UL, 256UL, 257UL, 700UL, 1024UL, 5000UL, 22050UL}) {
    for (const auto& samples : {noise(length, 0.1), chirp(length), clicks(length), bursts(length)}) {
      const Mel expected = mel_reference(spec, samples), got = fast.compute(samples);
      ASSERT_EQ(got.frames, expected.frames) << length;
      double largest = 0;
      for (const float x : expected.values) largest = std::max(largest, std::abs(static_cast<double>(x)));
      const double tolerance = spec.log == MelLog::none ? 1e-5 * largest : 1e-3;
      for (size_t i = 0; i < got.values.size(); ++i) {
        ASSERT_NEAR(got.values[i], expected.values[i], tolerance) << spec.name << " " << length << " at " << i;
      }
    }
  }
}

TEST_P(EveryPreset, silence_and_an_empty_clip_have_defined_results) {
  MelCpu mel(GetParam());
  EXPECT_EQ(mel.compute(std::vector<float>{}).frames, 0);
  for (const float x : mel.compute(std::vector<float>(4000)).values) ASSERT_TRUE(std::isfinite(x));
}

TEST_P(EveryPreset, a_clip_does_not_depend_on_what_was_computed_before) {
  MelCpu mel(GetParam()), fresh(GetParam());
  const std::vector<float> clip = noise(3000, 0.2, 7);
  mel.compute(noise(50000, 0.9));
  EXPECT_EQ(mel.compute(clip).values, fresh.compute(clip).values);
}

INSTANTIATE_TEST_SUITE_P(Mel, EveryPreset, testing::ValuesIn(mel_presets()),
                         [](const auto& preset) { return preset.param.name; });

#if defined(__x86_64__)
TEST(MelKernel, with_and_without_avx2_is_equal_to_the_last_bit) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this CPU has no AVX2";
  for (const MelSpec& spec : mel_presets()) {
    const MelTables tables(spec);
    std::vector<std::byte> scratch(tables.scratch_bytes() + scratch_alignment);
    void* aligned = scratch.data();
    size_t room = scratch.size();
    std::align(scratch_alignment, tables.scratch_bytes(), aligned, room);
    const std::vector<float> samples = noise(static_cast<size_t>(spec.n_fft + 8 * spec.hop_length), 0.1);
    std::vector<float> plain(static_cast<size_t>(8 * spec.n_mels)), vectors = plain;
    const float* frames[mel_lanes];
    float *plain_rows[mel_lanes], *vector_rows[mel_lanes];
    for (int lane = 0; lane < mel_lanes; ++lane) {
      frames[lane] = samples.data() + lane * spec.hop_length;
      plain_rows[lane] = plain.data() + lane * spec.n_mels;
      vector_rows[lane] = vectors.data() + lane * spec.n_mels;
    }
    any_cpu::mel_eight_frames(tables, frames, plain_rows, aligned);
    avx2::mel_eight_frames(tables, frames, vector_rows, aligned);
    EXPECT_EQ(plain, vectors) << spec.name;
  }
}
#endif

TEST(MelSpec, counts_frames_as_each_convention_does) {
  const auto frames = [](const char* preset, int64_t samples) { return mel_preset(preset).frames(samples); };
  EXPECT_EQ(frames("hifigan", 22050), 86);
  EXPECT_EQ(frames("tacotron2", 22050), 87);
  EXPECT_EQ(frames("whisper", 16000), 100);
  EXPECT_EQ(frames("tf_signal", 22050), 87);
  EXPECT_EQ(frames("tf_signal", 22016), 86);
  EXPECT_EQ(frames("hifigan", 255), 0);
  EXPECT_EQ(frames("librosa", 1), 1);
}

TEST(MelSpec, a_users_preset_builds_on_another_and_single_numbers_win) {
  Config config;
  config.mel_presets["mine"] = {{"base", "vocos"}, {"n_mels", "64"}};
  config.data.mel_preset = "mine";
  config.data.mel_overrides["hop_length"] = "300";
  const MelSpec spec = resolve_mel_spec(config);
  EXPECT_EQ(spec.name, "mine");
  EXPECT_EQ(spec.n_mels, 64);
  EXPECT_EQ(spec.hop_length, 300);
  EXPECT_EQ(spec.sample_rate, 24000);
}

TEST(MelSpec, any_field_that_changes_changes_the_description) {
  const MelSpec before = mel_preset("hifigan");
  MelSpec spec = before;
  // Does not compile when a field is added, until it is changed below as well.
  auto& [name, sample_rate, n_fft, hop_length, win_length, n_mels, f_min, f_max, mel_scale, mel_norm, mel_power,
         magnitude_epsilon, padding, drop_last_frame, log, log_floor, log_offset, mean, std, range, range_low,
         range_high, target_rms] = spec;
  const auto check = [&](auto& field, auto other) {
    field = other;
    EXPECT_NE(spec.description(), before.description()) << other;
    EXPECT_FALSE(spec == before);
    spec = before;
  };
  for (int* field : {&sample_rate, &n_fft, &hop_length, &win_length, &n_mels, &mel_power}) check(*field, *field + 1);
  for (double* field : {&f_min, &f_max, &magnitude_epsilon, &log_floor, &log_offset, &mean, &std, &range_low,
                        &range_high, &target_rms}) {
    check(*field, *field + 1e-9);
  }
  const auto check_choice = [&](auto& field, auto other) {
    field = other;
    EXPECT_NE(spec.description(), before.description());
    spec = before;
  };
  check_choice(mel_scale, MelScale::htk);
  check_choice(mel_norm, MelNorm::none);
  check_choice(padding, MelPadding::centre);
  check_choice(drop_last_frame, true);
  check_choice(log, MelLog::log10);
  check_choice(range, MelRange::whisper);
  name = "another";
  EXPECT_EQ(spec.description(), before.description());
}

TEST(MelSpec, what_cannot_be_is_refused) {
  const auto refused = [](const std::string& key, const std::string& value) {
    Config config;
    config.data.mel_overrides[key] = value;
    EXPECT_THROW(resolve_mel_spec(config), Error) << key << " " << value;
  };
  refused("n_fft", "1022");
  refused("n_fft", "0");
  refused("hop_length", "-1");
  refused("n_mels", "many");
  refused("f_max", "20000");
  refused("mel_scale", "bark");
  refused("log_floor", "0");
  EXPECT_THROW(mel_preset("hifigam"), Error);
}

TEST(Padding, reflects_as_often_as_needed) {
  EXPECT_EQ(reflected_index(-1, 5), 1);
  EXPECT_EQ(reflected_index(5, 5), 3);
  EXPECT_EQ(reflected_index(-9, 3), 1);
  EXPECT_EQ(reflected_index(1000, 1), 0);
}

}  // namespace
}  // namespace myxtts
