#include "synth/vocoder_runner.h"

#include "device/device.h"
#include "features/cpu/griffin_lim.h"
#include "synth/vocoder_file.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace myxtts {
namespace {

const MelSpec& mel() { return mel_preset("hifigan"); }

VocoderSpec spec() { return vocoder_spec("tiny", mel(), -5, 2); }

at::Tensor initial() { return Vocoder(spec()).layout().initial(7); }

// A vocoder with random weights, as a file would be.
class Random : public WaveformMaker {
 public:
  std::vector<float> waveform(const at::Tensor& frames) const override { return runner_.waveform(frames); }
  int64_t context_frames() const override { return runner_.vocoder().context_frames(); }

 private:
  VocoderRunner runner_{spec(), mel(), initial(), at::kCPU};
};

float largest_difference(const std::vector<float>& one, const std::vector<float>& other) {
  float largest = 0;
  for (size_t i = 0; i < one.size(); ++i) largest = std::max(largest, std::abs(one[i] - other[i]));
  return largest;
}

TEST(VocoderRunner, parts_are_the_same_samples_as_the_whole) {
  const Random vocoder;
  for (const int64_t count : {1, 40, 203}) {
    const at::Tensor frames = at::randn({count, mel().n_mels}) * 2 - 5;
    const std::vector<float> whole = vocoder.waveform(frames);
    ASSERT_EQ(whole.size(), static_cast<size_t>(griffin_lim_samples(mel(), count)));
    for (const int64_t frames_each : {1, 16, 64, 500}) {
      std::vector<float> joined;
      for (int64_t first = 0; first < count; first += frames_each) {
        const auto part = waveform_part(vocoder, mel(), frames, first, std::min(count, first + frames_each));
        joined.insert(joined.end(), part.begin(), part.end());
      }
      ASSERT_EQ(joined.size(), whole.size()) << count << " by " << frames_each;
      EXPECT_LT(largest_difference(joined, whole), 1e-5F) << count << " by " << frames_each;
    }
  }
}

TEST(VocoderRunner, captured_on_a_gpu_it_makes_the_samples_of_the_cpu) {
  if (device_count() == 0 || !at::globalContext().hasCUDA())
    GTEST_SKIP() << "there is no GPU: captured waveforms are NOT tested";
  const VocoderRunner gpu(spec(), mel(), initial(), at::Device(at::kCUDA, 0)), cpu(spec(), mel(), initial(), at::kCPU);
  gpu.warm_up(300);
  EXPECT_EQ(gpu.captures(), 4U);
  for (const int64_t count : {5, 96, 97, 300, 5}) {
    const at::Tensor frames = at::randn({count, mel().n_mels}) * 2 - 5;
    const std::vector<float> wanted = cpu.waveform(frames), made = gpu.waveform(frames);
    ASSERT_EQ(made.size(), wanted.size());
    double error = 0, power = 0;
    for (size_t i = 0; i < made.size(); ++i) {
      error += std::pow(made[i] - wanted[i], 2), power += std::pow(wanted[i], 2);
    }
    EXPECT_LT(error, 0.01 * power) << count;  // bfloat16
    EXPECT_EQ(gpu.waveform(frames), made) << count;
  }
}

}  // namespace
}  // namespace myxtts
