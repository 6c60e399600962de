#include "base/counted.h"
#include "base/error.h"
#include "base/files.h"
#include "cli/commands.h"
#include "device/device.h"
#include "diagnose/oscillation.h"
#include "features/mel_spec.h"
#include "settings/config.h"
#include "train/step_bench.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <sstream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

struct Options {
  StepBench bench;
  std::string device = "auto", level = "enhanced";
  double tera_flops = 0;
  bool kernels = false;
  std::string lengths_file;
  int64_t shape_buckets = DataConfig().shape_buckets;
};

std::vector<int64_t> read_lengths(const std::string& file) {
  constexpr int64_t longest = 100'000;
  constexpr uint64_t most_bytes = 1 << 20;
  std::vector<int64_t> lengths;
  std::istringstream lines(read_text_file(file, most_bytes));
  for (std::string line; std::getline(lines, line);) {
    int64_t frames = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), frames);
    if (error != std::errc() || end != line.data() + line.size() || frames < 1 || frames > longest) {
      reject_input("bench", "{}:{}: '{}' is not a number of frames from 1 to {}", file, lengths.size() + 1, line,
                   longest);
    }
    lengths.push_back(frames);
  }
  if (lengths.empty())
    reject_input("bench", "{} is empty", file, way_out("--lengths takes one number of frames per line"));
  return lengths;
}

std::string describe(const StepBench& bench, int64_t parameters, const std::string& batch) {
  const bool gpu = bench.device >= 0;
  return fmt::format("step, {} ({:.1f} million parameters{}), {}, {}, {}", bench.size,
                     static_cast<double>(parameters) / 1e6, bench.convolutions ? "" : ", attention alone", batch,
                     gpu && bench.half ? "bfloat16" : "float", bench.fused ? "fused kernels" : "plain operations") +
         (!gpu            ? ""
          : bench.capture ? ", captured"
                          : ", not captured") +
         (bench.reduce ? ", summed by NCCL" : "");
}

// What every form of this bench writes; nothing is known of the limit without --tera-flops.
nlohmann::ordered_json figures_of(const std::string& what, const std::string& device, double figure, double limit_ms,
                                  double tera_flops, size_t repeats, double cv) {
  const auto known = [&](double value) {
    return limit_ms > 0 ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
  };
  return {{"what", what},
          {"device", device},
          {"figure", figure},
          {"unit", "ms"},
          {"limit", known(limit_ms)},
          {"limit_is", fmt::format("matrix products at {:g} TFLOP/s", tera_flops)},
          {"fraction_of_limit", known(limit_ms / figure)},
          {"repeats", repeats},
          {"cv", cv}};
}

// The longest kernels of a step, and the rest in one line.
void show_kernels(const std::vector<KernelTime>& kernels, const Console& console) {
  if (kernels.empty()) return;
  constexpr size_t shown = 25, name_width = 90;
  double all_ms = 0, rest_ms = 0, all_launches = 0;
  for (const KernelTime& kernel : kernels) all_ms += kernel.ms, all_launches += kernel.launches;
  console.info("");
  console.info("  {:>8} {:>6} {:>6}  kernel", "ms", "share", "times");
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (i >= shown) {
      rest_ms += kernels[i].ms;
      continue;
    }
    console.info("  {:>8.3f} {:>5.1f}% {:>6.0f}  {}", kernels[i].ms, 100 * kernels[i].ms / all_ms, kernels[i].launches,
                 kernels[i].name.substr(0, name_width));
  }
  if (rest_ms > 0)
    console.info("  {:>8.3f} {:>5.1f}%         {} more", rest_ms, 100 * rest_ms / all_ms, kernels.size() - shown);
  console.info("  {:>8.3f}        {:>6.0f}  all kernels of a step", all_ms, all_launches);
}

int bench_varying(const Options& options, const StepBench& bench, const std::string& device,
                  const std::string& json_file, const Console& console) {
  const std::vector<int64_t> lengths = read_lengths(options.lengths_file);
  const VaryingTimes times = measure_varying_step(bench, lengths, options.shape_buckets);
  const SummaryStats step = summarize(times.step_ms);
  const double mean = step.mean, median = step.p50, longest = step.max, cv = step.cv;
  const double audio_s_per_s = times.audio_s / (mean * static_cast<double>(times.step_ms.size()) * 1e-3);
  const auto [shortest_length, longest_length] = std::minmax_element(lengths.begin(), lengths.end());
  const std::string what =
      describe(bench, times.parameters,
               fmt::format("{} x {} to {} frames in {}", bench.rows, *shortest_length, *longest_length,
                           counted(static_cast<uint64_t>(times.shapes), "shape")));
  console.info("{}, on {}", what, device);
  console.info("  {:>10.2f} ms  (mean of {} steps; median {:.2f}, longest {:.2f}, cv {:.1f} %)", mean,
               times.step_ms.size(), median, longest, 100 * cv);
  console.info("  {:>10.0f} s of audio per second; {:.1f} % of the frames are padding", audio_s_per_s,
               100 * times.padding);
  if (times.captures > 0) {
    console.info("  {:>10} captured in {:.2f} s", counted(static_cast<uint64_t>(times.captures), "step"),
                 times.capture_s);
  }
  const double limit_ms = options.tera_flops > 0 ? times.flop / (options.tera_flops * 1e12) * 1e3 : 0;
  if (limit_ms > 0) {
    console.info("  {:>10.2f} ms is the floor, without padding, at {:g} TFLOP/s: {:.0f} % of it is reached", limit_ms,
                 options.tera_flops, 100 * limit_ms / mean);
  }
  if (!json_file.empty()) {
    nlohmann::ordered_json json =
        figures_of(what, device, mean, limit_ms, options.tera_flops, times.step_ms.size(), cv);
    json["median"] = median;
    json["max"] = longest;
    json["shapes"] = times.shapes;
    json["captures"] = times.captures;
    json["padding"] = times.padding;
    json["audio_s_per_s"] = audio_s_per_s;
    json["tflop"] = times.flop / 1e12;
    json["capture_s"] = times.capture_s;
    write_file_atomically(json_file, json.dump(2) + "\n");
  }
  return 0;
}

StepBench resolve(const Options& options) {
  StepBench bench = options.bench;
  if (bench.rows < 1 || bench.tokens < 1 || bench.frames < bench.tokens || bench.repeats < 1 || bench.steps_each < 1) {
    reject_input("bench",
                 "--batch-size, --tokens, --repeats and --steps must be at least 1, --frames at least --tokens");
  }
  if (bench.speakers < 0 || bench.encoder_blocks < 0) {
    reject_input("bench", "--speakers and --encoder-blocks must not be negative", way_out("leave them out"));
  }
  const bool gpu = options.device == "auto" ? device_count() > 0 : options.device != "cpu";
  if (gpu) bench.device = parse_device(options.device == "auto" ? "cuda:0" : options.device);
  if (options.level == "basic") bench.half = bench.capture = bench.fused = false;
  if (options.kernels && !gpu) reject_input("bench", "--kernels is for a GPU", way_out("give --device cuda:N"));
  if (bench.reduce && !gpu) reject_input("bench", "--reduce is for a GPU", way_out("give --device cuda:N"));
  bench.profiled_steps = options.kernels ? 5 : 0;
  return bench;
}

double limit_ms_of(const StepTimes& times, const Options& options) {
  return options.tera_flops > 0 ? times.flop / (options.tera_flops * 1e12) * 1e3 : 0;
}

void print(const StepTimes& times, const StepBench& bench, const Options& options, const Console& console) {
  const SummaryStats step = summarize(times.step_ms);
  const double limit_ms = limit_ms_of(times, options);
  const bool captured = bench.device >= 0 && bench.capture;
  console.info("  {:>10.2f} ms  (median of {} x {} steps, cv {:.2f} %){}", step.p50, times.step_ms.size(),
               bench.steps_each, 100 * step.cv, captured ? fmt::format(", captured in {:.2f} s", times.capture_s) : "");
  if (times.flop > 0)
    console.info("  {:>10.2f} TFLOP per step, {:.1f} TFLOP/s", times.flop / 1e12, times.flop / step.p50 * 1e3 / 1e12);
  if (limit_ms > 0) {
    console.info("  {:>10.2f} ms is the arithmetic's floor at {:g} TFLOP/s: {:.0f} % of it is reached", limit_ms,
                 options.tera_flops, 100 * limit_ms / step.p50);
  }
  if (times.memory_bytes > 0) console.info("  {:>10.2f} GB of GPU memory", times.memory_bytes / 1e9);
  if (times.estimated_bytes > 0)
    console.info("  {:>10.2f} GB by the estimate that batch sizes are chosen by", times.estimated_bytes / 1e9);
  show_kernels(times.kernels, console);
}

int bench_step(const Options& options, const std::string& json_file, const Console& console) {
  const StepBench bench = resolve(options);
  const std::string name = bench.device >= 0 ? device_name(bench.device) : "CPU";
  if (!options.lengths_file.empty()) return bench_varying(options, bench, name, json_file, console);
  const StepTimes times = measure_step(bench);
  const std::string batch = bench.target == "vocoder"
                                ? fmt::format("{} x {} samples", bench.rows, crop_samples)
                                : fmt::format("{} x {} frames x {} tokens", bench.rows, bench.frames, bench.tokens);
  const std::string what = describe(bench, times.parameters, batch);
  console.info("{}, on {}", what, name);
  print(times, bench, options, console);
  if (!json_file.empty()) {
    const SummaryStats step = summarize(times.step_ms);
    nlohmann::ordered_json json = figures_of(what, name, step.p50, limit_ms_of(times, options), options.tera_flops,
                                             times.step_ms.size(), step.cv);
    json["parameters"] = times.parameters;
    json["tflop"] = times.flop / 1e12;
    json["capture_s"] = times.capture_s;
    if (times.memory_bytes > 0) json["memory_bytes"] = times.memory_bytes;
    if (times.estimated_bytes > 0) json["estimated_bytes"] = times.estimated_bytes;
    for (const KernelTime& kernel : times.kernels) {
      json["kernels"].push_back({{"name", kernel.name}, {"launches", kernel.launches}, {"ms", kernel.ms}});
    }
    write_file_atomically(json_file, json.dump(2) + "\n");
  }
  return 0;
}

}  // namespace

void add_bench_step(CLI::App& bench, Program& program) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = bench.add_subcommand("step", "a training step: forward, backward, clipping, optimiser and EMA");
  const auto number = [&](const char* flag, auto& value, const char* meaning) {
    return command->add_option(flag, value, meaning)->capture_default_str()->type_name("N");
  };
  command->add_option("--target", options->bench.target, "what is trained: a voice, or a vocoder on crops at 24 kHz")
      ->capture_default_str()
      ->check(CLI::IsMember({"voice", "vocoder"}))
      ->type_name("");
  CLI::Option* size =
      command->add_option("--model-size", options->bench.size, "tiny, small, normal or big; of a vocoder, tiny or base")
          ->type_name("");
  number("--batch-size", options->bench.rows, "clips");
  std::vector<CLI::Option*> of_voices = {
      number("--frames", options->bench.frames, "of each clip"),
      number("--tokens", options->bench.tokens, "of each clip; with --lengths, of a clip of --frames"),
      number("--speakers", options->bench.speakers, "above 0: a voice of so many speakers, with references"),
      number("--encoder-blocks", options->bench.encoder_blocks, "above 0: instead of the size's own"),
      command->add_flag("!--attention-alone", options->bench.convolutions,
                        "the model of version 0.1, without convolutions and dropout")};
  CLI::Option* repeats = number("--repeats", options->bench.repeats, "measurements");
  CLI::Option* steps = number("--steps", options->bench.steps_each, "steps in a measurement");
  CLI::Option* lengths =
      command->add_option("--lengths", options->lengths_file, "frames of each step's clips, one line per step")
          ->type_name("FILE")
          ->excludes(repeats, steps);
  number("--shape-buckets", options->shape_buckets, "most shapes that the lengths share")
      ->check(CLI::Range(1, 64))
      ->needs(lengths);
  command->add_option("--device", options->device, "auto, cpu or cuda:N")->capture_default_str()->type_name("");
  command->add_option("--optimization-level", options->level, "basic: float32, plain operations, no capture")
      ->capture_default_str()
      ->check(CLI::IsMember({"basic", "enhanced", "experimental"}))
      ->type_name("");
  command->add_flag("--kernels", options->kernels, "a table of the step's kernels by time")->excludes(lengths);
  command
      ->add_flag("--reduce", options->bench.reduce, "sum gradients by NCCL within the step, as a run of one rank does")
      ->excludes(lengths);
  command->add_flag("!--disable-graph-mode", options->bench.capture, "launch every kernel of every step");
  command->add_flag("!--disable-fused-kernels", options->bench.fused, "plain operations of libtorch");
  of_voices.push_back(lengths);
  of_voices.push_back(
      command
          ->add_option("--tera-flops", options->tera_flops, "what the device can do in matrix products, for the floor")
          ->type_name("X"));
  add_json_option(*command, program);
  command->callback([&program, options, size, of_voices] {
    if (options->bench.target == "vocoder") {
      if (size->count() == 0) options->bench.size = "base";
      for (const CLI::Option* option : of_voices) {
        if (option->count() == 0) continue;
        reject_input("bench", "{} is of a voice", option->get_name(), way_out("leave it or --target vocoder out"));
      }
    }
    program.run = [&program, options](Console& console) { return bench_step(*options, program.json_file, console); };
  });
}

}  // namespace myxtts
