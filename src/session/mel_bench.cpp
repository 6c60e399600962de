#include "session/mel_bench.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "device/device.h"
#include "features/mel.h"
#include "features/mel_gpu.h"

#include <algorithm>
#include <cmath>

namespace myxtts {
namespace {

// Speech-like loudness and spectrum: noise whose samples lean on their neighbours. Never zeros.
std::vector<int16_t> test_samples(size_t count, uint64_t seed) {
  std::vector<int16_t> samples(count);
  Random random(seed);
  double last = 0;
  for (int16_t& sample : samples) {
    last = 0.9 * last + 0.03 * random.normal();
    sample = static_cast<int16_t>(std::clamp(last, -1.0, 1.0) * 32767);
  }
  return samples;
}

MelBenchResult bench_cpu(const MelSpec& spec, const MelBench& options) {
  const auto length = static_cast<size_t>(options.seconds * spec.sample_rate);
  std::vector<std::vector<float>> clips;
  for (int i = 0; i < options.clips; ++i) {
    const std::vector<int16_t> pcm = test_samples(length, static_cast<uint64_t>(i));
    std::vector<float>& clip = clips.emplace_back();
    for (const int16_t x : pcm) clip.push_back(static_cast<float>(x) / 32768.0F);
  }
  MelCpu mel(spec);
  std::vector<float> out(static_cast<size_t>(spec.frames(static_cast<int64_t>(length)) * spec.n_mels));
  MelBenchResult measured{"cpu, one thread", {}, 0, "the arithmetic at one core's measured peak"};
  for (int repeat = -2; repeat < options.repeats; ++repeat) {
    const Stopwatch watch;
    for (const std::vector<float>& clip : clips) mel.compute(clip, out);
    if (repeat >= 0) measured.batch_s.push_back(watch.seconds());
  }
  measured.limit_times_real_time = mel_cpu_limit_frames_per_s(spec) * spec.hop_length / spec.sample_rate;
  return measured;
}

MelBenchResult bench_gpu(const MelSpec& spec, const MelBench& options) {
  const int device = parse_device(options.device);
  const auto length = static_cast<size_t>(options.seconds * spec.sample_rate);
  const int64_t frames = spec.frames(static_cast<int64_t>(length));
  const auto rows = static_cast<size_t>(options.clips);
  MelGpu mel(spec, device, {options.clips, static_cast<int64_t>(length), frames, {}});
  // Several batches in turn, so that no input is found in the cache.
  constexpr int batches = 8;
  std::vector<DeviceBuffer> inputs, outputs;
  std::vector<GpuClip> clips;
  for (size_t i = 0; i < rows; ++i)
    clips.push_back({i * length * 2, static_cast<uint32_t>(length), spec.sample_rate, 1, SampleFormat::pcm_16});
  DeviceBuffer clips_there(device, clips.size() * sizeof(GpuClip));
  clips_there.upload(std::as_bytes(std::span(clips)));
  for (int batch = 0; batch < batches; ++batch) {
    inputs.emplace_back(device, rows * length * 2);
    const std::vector<int16_t> samples = test_samples(rows * length, static_cast<uint64_t>(batch));
    inputs.back().upload(std::as_bytes(std::span(samples)));
    outputs.emplace_back(device, rows * static_cast<size_t>(frames * spec.n_mels) * sizeof(float));
  }
  DeviceTimer timer(device);
  MelBenchResult measured{
      device_name(device), {}, 0, "bytes in and out at the measured bandwidth of a copy on the device"};
  const auto* there = static_cast<const GpuClip*>(clips_there.data());
  constexpr int runs = 5 * batches;
  for (int repeat = -3; repeat < options.repeats; ++repeat) {
    timer.start();
    for (int run = 0; run < runs; ++run) {
      mel.run(inputs[static_cast<size_t>(run % batches)].data(), there, options.clips, true,
              outputs[static_cast<size_t>(run % batches)].data(), frames, MelType::float32, 0.0F, nullptr);
    }
    const double ms = timer.stop_ms();
    if (repeat >= 0) measured.batch_s.push_back(ms * 1e-3 / runs);
  }
  const double bytes_per_s_of_audio = spec.sample_rate * (2.0 + 4.0 * spec.n_mels / spec.hop_length);
  measured.limit_times_real_time = measure_copy_bytes_per_s(device) / bytes_per_s_of_audio;
  return measured;
}

}  // namespace

MelBenchResult bench_mel(const MelBench& bench) {
  if (bench.clips < 1 || bench.repeats < 1 || bench.seconds < 0.1 || bench.seconds > 600) {
    reject_input("bench", "--clips and --repeats must be at least 1, --seconds from 0.1 to 600");
  }
  const MelSpec& spec = mel_preset(bench.preset);
  return bench.device == "cpu" ? bench_cpu(spec, bench) : bench_gpu(spec, bench);
}

}  // namespace myxtts
