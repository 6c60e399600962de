#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "cli/commands.h"
#include "diagnose/oscillation.h"
#include "features/mel.h"
#include "features/mel_gpu.h"

#include <cmath>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

struct Options {
  std::string preset = "hifigan", device = "cpu";
  int clips = 64, repeats = 30;
  double seconds = 8;
};

struct Measured {
  std::string device;
  std::vector<double> batch_s;  // of each repeat
  double limit_times_real_time = 0;
  std::string limit;
};

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

Measured bench_cpu(const MelSpec& spec, const Options& options) {
  const auto length = static_cast<size_t>(options.seconds * spec.sample_rate);
  std::vector<std::vector<float>> clips;
  for (int i = 0; i < options.clips; ++i) {
    const std::vector<int16_t> pcm = test_samples(length, static_cast<uint64_t>(i));
    std::vector<float>& clip = clips.emplace_back();
    for (const int16_t x : pcm) clip.push_back(static_cast<float>(x) / 32768.0F);
  }
  MelCpu mel(spec);
  std::vector<float> out(static_cast<size_t>(spec.frames(static_cast<int64_t>(length)) * spec.n_mels));
  Measured measured{"cpu, one thread", {}, 0, "the arithmetic at one core's measured peak"};
  for (int repeat = -2; repeat < options.repeats; ++repeat) {
    const Stopwatch watch;
    for (const std::vector<float>& clip : clips) mel.compute(clip, out);
    if (repeat >= 0) measured.batch_s.push_back(watch.seconds());
  }
  measured.limit_times_real_time = mel_cpu_limit_frames_per_s(spec) * spec.hop_length / spec.sample_rate;
  return measured;
}

Measured bench_gpu(const MelSpec& spec, const Options& options) {
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
  Measured measured{device_name(device), {}, 0, "bytes in and out at the measured bandwidth of a copy on the device"};
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

int bench_mel(const Options& options, const std::string& json_file, const Console& console) {
  if (options.clips < 1 || options.repeats < 1 || options.seconds < 0.1 || options.seconds > 600) {
    reject_input("bench", "--clips and --repeats must be at least 1, --seconds from 0.1 to 600");
  }
  const MelSpec& spec = mel_preset(options.preset);
  const Measured measured = options.device == "cpu" ? bench_cpu(spec, options) : bench_gpu(spec, options);
  const size_t repeats = measured.batch_s.size();
  const Spread batch = spread_of(measured.batch_s);
  const double median = batch.p50, cv = batch.variation;
  const double figure = options.clips * options.seconds / median;
  const double fraction = figure / measured.limit_times_real_time;
  console.info("log-mel, preset {}, batch {} x {:g} s, on {}", spec.name, options.clips, options.seconds,
               measured.device);
  console.info("  {:>12.0f} x real time  ({:.1f} us a batch, median of {}, cv {:.1f} %)", figure, median * 1e6, repeats,
               100 * cv);
  console.info("  {:>12.0f} x real time is the limit: {}", measured.limit_times_real_time, measured.limit);
  console.info("  {:>11.0f} % of the limit", 100 * fraction);
  if (!json_file.empty()) {
    const nlohmann::ordered_json json = {
        {"what", fmt::format("log-mel {} batch {} x {:g} s", spec.name, options.clips, options.seconds)},
        {"device", measured.device},
        {"figure", figure},
        {"unit", "x real time"},
        {"limit", measured.limit_times_real_time},
        {"limit_is", measured.limit},
        {"fraction_of_limit", fraction},
        {"repeats", repeats},
        {"cv", cv}};
    write_file_atomically(json_file, json.dump(2) + "\n");
  }
  return 0;
}

}  // namespace

void add_bench_command(CLI::App& app, Program& program) {
  CLI::App* bench = app.add_subcommand("bench", "the figures behind the README's claims, measured here");
  bench->require_subcommand(1);
  const auto options = std::make_shared<Options>();
  CLI::App* mel = bench->add_subcommand("mel", "log-mel alone, samples in memory, with the limit beside it");
  mel->add_option("--preset", options->preset, "convention")->capture_default_str()->type_name("NAME");
  mel->add_option("--device", options->device, "cpu or cuda:N")->capture_default_str()->type_name("");
  mel->add_option("--clips", options->clips, "clips in a batch")->capture_default_str()->type_name("N");
  mel->add_option("--seconds", options->seconds, "length of a clip")->capture_default_str()->type_name("S");
  mel->add_option("--repeats", options->repeats, "how often")->capture_default_str()->type_name("N");
  add_json_option(*mel, program);
  mel->callback([&program, options] {
    program.run = [&program, options](Console& console) { return bench_mel(*options, program.json_file, console); };
  });
  add_bench_loader(*bench, program);
  add_bench_step(*bench, program);
}

}  // namespace myxtts
