#include "features/mel_gpu.h"

#include "audio/resample.h"
#include "base/random.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

// Skips with a message if there is no GPU.
class MelOnGpu : public testing::TestWithParam<MelSpec> {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << "no GPU: the CUDA mel is not tested";
  }
};

enum class Signal { noise, chirp, burst, silence, clicks };

std::vector<int16_t> signal(Signal kind, size_t length, uint64_t seed) {
  std::vector<int16_t> samples(length);
  Random random(seed);
  for (size_t i = 0; i < length; ++i) {
    const double t = static_cast<double>(i);
    double x = 0;
    if (kind == Signal::noise) x = 3000 * random.normal();
    if (kind == Signal::chirp) x = 12000 * std::sin(0.02 * t * (1 + 40 * t / static_cast<double>(length)));
    if (kind == Signal::burst) x = (i / 3000 % 3 == 1 ? 8000 : 1) * random.normal();
    if (kind == Signal::clicks) x = i % 1777 == 1000 ? 20000 : 0;
    samples[i] = static_cast<int16_t>(std::clamp(x, -32768.0, 32767.0));
  }
  return samples;
}

std::vector<float> as_floats(const std::vector<int16_t>& samples) {
  std::vector<float> floats;
  for (const int16_t x : samples) floats.push_back(static_cast<float>(x) / 32768.0F);
  return floats;
}

struct HostBatch {
  std::vector<std::byte> bytes;
  std::vector<GpuClip> clips;

  void add(const std::vector<int16_t>& samples, int rate) {
    clips.push_back({bytes.size(), static_cast<uint32_t>(samples.size()), rate, 1, SampleFormat::pcm_16});
    const auto added = std::as_bytes(std::span(samples));
    bytes.insert(bytes.end(), added.begin(), added.end());
  }
};

std::vector<float> run(const MelSpec& spec, const HostBatch& batch, int64_t frames, float padding, bool plain = true) {
  int64_t longest = 1;
  for (const GpuClip& clip : batch.clips) longest = std::max<int64_t>(longest, clip.samples);
  MelGpu mel(spec, 0, {static_cast<int>(batch.clips.size()), longest, frames, {}});
  DeviceBuffer bytes(0, std::max<size_t>(batch.bytes.size(), 1)), clips(0, batch.clips.size() * sizeof(GpuClip));
  std::vector<float> values(batch.clips.size() * static_cast<size_t>(frames * spec.n_mels), NAN);
  DeviceBuffer out(0, values.size() * sizeof(float));
  bytes.upload(batch.bytes);
  clips.upload(std::as_bytes(std::span(batch.clips)));
  out.upload(std::as_bytes(std::span(values)));  // poisoned: every element must be written
  mel.run(bytes.data(), static_cast<const GpuClip*>(clips.data()), static_cast<int>(batch.clips.size()), plain,
          out.data(), frames, MelType::float32, padding, nullptr);
  out.download(std::as_writable_bytes(std::span(values)));
  return values;
}

TEST_P(MelOnGpu, agrees_with_the_reference_on_a_batch_of_many_lengths) {
  const MelSpec& spec = GetParam();
  HostBatch batch;
  std::vector<std::vector<float>> clips;
  int64_t frames = 0;
  for (const Signal kind : {Signal::noise, Signal::chirp, Signal::burst, Signal::silence, Signal::clicks}) {
    for (const size_t length : {1UL, 2UL, 255UL, 256UL, 300UL, 1024UL, 5000UL, 23456UL}) {
      const std::vector<int16_t> samples = signal(kind, length, length);
      batch.add(samples, spec.sample_rate);
      clips.push_back(as_floats(samples));
      frames = std::max(frames, spec.frames(static_cast<int64_t>(length)));
    }
  }
  frames += 3;
  const std::vector<float> values = run(spec, batch, frames, -7.0F);
  double worst = 0;
  for (size_t c = 0; c < clips.size(); ++c) {
    const Mel expected = mel_reference(spec, clips[c]);
    double largest = 0;
    for (const float x : expected.values) largest = std::max(largest, std::abs(static_cast<double>(x)));
    const double tolerance = spec.log == MelLog::none ? 1e-5 * largest : 1e-3;
    const float* row = values.data() + c * static_cast<size_t>(frames * spec.n_mels);
    for (size_t i = 0; i < expected.values.size(); ++i) {
      ASSERT_NEAR(row[i], expected.values[i], tolerance) << "clip " << c << " value " << i;
      worst = std::max(worst, std::abs(static_cast<double>(row[i]) - expected.values[i]));
    }
    for (auto i = static_cast<int64_t>(expected.values.size()); i < frames * spec.n_mels; ++i) ASSERT_EQ(row[i], -7.0F);
  }
  std::printf("    %s: largest difference from float64 %.2e\n", spec.name.c_str(), worst);
}

TEST_P(MelOnGpu, is_bit_equal_from_run_to_run_and_whatever_the_neighbours) {
  const MelSpec& spec = GetParam();
  HostBatch together, reversed;
  std::vector<std::vector<int16_t>> clips;
  for (uint64_t i = 0; i < 9; ++i) clips.push_back(signal(static_cast<Signal>(i % 3), 4000 + 1777 * i, i));
  for (size_t i = 0; i < clips.size(); ++i) {
    together.add(clips[i], spec.sample_rate);
    reversed.add(clips[clips.size() - 1 - i], spec.sample_rate);
  }
  const int64_t frames = spec.frames(22000);
  const auto row = static_cast<size_t>(frames * spec.n_mels);
  const std::vector<float> first = run(spec, together, frames, 0), again = run(spec, together, frames, 0);
  const std::vector<float> other = run(spec, reversed, frames, 0);
  EXPECT_EQ(std::memcmp(first.data(), again.data(), first.size() * sizeof(float)), 0);
  for (size_t i = 0; i < clips.size(); ++i) {
    const float* there = other.data() + (clips.size() - 1 - i) * row;
    EXPECT_EQ(std::memcmp(first.data() + i * row, there, row * sizeof(float)), 0) << "clip " << i;
    HostBatch alone;
    alone.add(clips[i], spec.sample_rate);
    EXPECT_EQ(std::memcmp(first.data() + i * row, run(spec, alone, frames, 0, false).data(), row * sizeof(float)), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, MelOnGpu, testing::ValuesIn(mel_presets()),
                         [](const auto& preset) { return preset.param.name; });

using MelOnGpuOnce = MelOnGpu;

TEST_P(MelOnGpuOnce, every_encoding_channel_count_and_rate_agrees_with_the_cpu) {
  const MelSpec& spec = GetParam();
  Random random(8);
  for (int format = 0; format < 8; ++format) {
    for (const int channels : {1, 2, 5}) {
      for (const int rate : {spec.sample_rate, 16000, 44100, 48000}) {
        const auto kind = static_cast<SampleFormat>(format);
        const int width = bytes_per_sample(kind) * channels;
        std::vector<std::byte> bytes(static_cast<size_t>(width) * 9001);
        for (std::byte& b : bytes) b = static_cast<std::byte>(random.below(256));
        if (kind == SampleFormat::float_32 || kind == SampleFormat::float_64) {
          for (size_t i = 0; i < 9001UL * static_cast<size_t>(channels); ++i) {
            const double value = random.uniform(-1, 1);
            const auto narrow = static_cast<float>(value);
            if (kind == SampleFormat::float_64) std::memcpy(bytes.data() + 8 * i, &value, 8);
            if (kind == SampleFormat::float_32) std::memcpy(bytes.data() + 4 * i, &narrow, 4);
          }
        }
        std::vector<float> mono;
        for (int i = 0; i < 9001; ++i) {
          mono.push_back(mono_value(
              kind, channels, reinterpret_cast<const uint8_t*>(bytes.data()) + static_cast<ptrdiff_t>(i) * width));
        }
        const Mel expected = MelCpu(spec).compute(resample(mono, rate, spec.sample_rate));
        const Mel got = mel_on_gpu(spec, 0, bytes, {0, 9001, rate, channels, kind});
        ASSERT_EQ(got.frames, expected.frames);
        for (size_t i = 0; i < got.values.size(); ++i) {
          ASSERT_NEAR(got.values[i], expected.values[i], 1e-3) << format << " " << channels << " " << rate;
        }
      }
    }
  }
}

TEST_P(MelOnGpuOnce, bfloat16_is_the_float_result_rounded) {
  const MelSpec& spec = GetParam();
  const std::vector<int16_t> samples = signal(Signal::noise, 20000, 3);
  HostBatch batch;
  batch.add(samples, spec.sample_rate);
  const int64_t frames = spec.frames(20000);
  const std::vector<float> full = run(spec, batch, frames, 0);
  MelGpu mel(spec, 0, {1, 20000, frames, {}});
  DeviceBuffer bytes(0, batch.bytes.size()), clips(0, sizeof(GpuClip)), out(0, full.size() * 2);
  bytes.upload(batch.bytes);
  clips.upload(std::as_bytes(std::span(batch.clips)));
  mel.run(bytes.data(), static_cast<const GpuClip*>(clips.data()), 1, true, out.data(), frames, MelType::bfloat16, 0,
          nullptr);
  std::vector<uint16_t> halves(full.size());
  out.download(std::as_writable_bytes(std::span(halves)));
  for (size_t i = 0; i < full.size(); ++i) {
    const uint32_t bits = static_cast<uint32_t>(halves[i]) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    ASSERT_NEAR(value, full[i], std::abs(full[i]) / 256 + 1e-30);
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, MelOnGpuOnce,
                         testing::Values(mel_preset("hifigan"), mel_preset("cosyvoice"), mel_preset("tf_signal")),
                         [](const auto& preset) { return preset.param.name; });

}  // namespace
}  // namespace myxtts
