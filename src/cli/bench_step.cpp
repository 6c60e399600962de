#include "base/error.h"
#include "base/files.h"
#include "cli/commands.h"
#include "device/device.h"
#include "diagnose/oscillation.h"
#include "train/step_bench.h"

#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

struct Options {
  StepBench bench;
  std::string device = "auto", level = "enhanced";
  double tera_flops = 0;
  bool kernels = false;
};

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
  if (rest_ms > 0) console.info("  {:>8.3f} {:>5.1f}%         {} more", rest_ms, 100 * rest_ms / all_ms, kernels.size() - shown);
  console.info("  {:>8.3f}        {:>6.0f}  all kernels of a step", all_ms, all_launches);
}

int bench_step(const Options& options, const std::string& json_file, const Console& console) {
  StepBench bench = options.bench;
  if (bench.rows < 1 || bench.tokens < 1 || bench.frames < bench.tokens || bench.repeats < 1 || bench.steps_each < 1) {
    reject_input("bench",
                 "--batch-size, --tokens, --repeats and --steps must be at least 1, --frames at least --tokens");
  }
  const bool gpu = options.device == "auto" ? device_count() > 0 : options.device != "cpu";
  if (gpu) bench.device = parse_device(options.device == "auto" ? "cuda:0" : options.device);
  if (options.level == "basic") bench.half = bench.record = bench.fused = false;
  if (options.kernels && !gpu) reject_input("bench", "--kernels is for a GPU; give --device cuda:N");
  bench.profiled_steps = options.kernels ? 5 : 0;
  const StepTimes times = measure_step(bench);
  const Spread step = spread_of(times.step_ms);
  const double median = step.p50, cv = step.variation;
  const double rate = times.flop / (median * 1e-3) / 1e12;
  const std::string name = gpu ? device_name(bench.device) : "CPU";
  const std::string what =
      fmt::format("step, {} ({:.1f} million weights), {} x {} frames x {} tokens, {}", bench.size,
                  static_cast<double>(times.parameters) / 1e6, bench.rows, bench.frames, bench.tokens,
                  gpu && bench.half ? "bfloat16" : "float") +
      (bench.fused ? ", fused kernels" : ", plain operations") + (!gpu ? "" : bench.record ? ", recorded" : ", not recorded");
  console.info("{}, on {}", what, name);
  console.info("  {:>10.2f} ms  (median of {} x {} steps, cv {:.2f} %){}", median, times.step_ms.size(),
               bench.steps_each, 100 * cv,
               times.record_s > 0 && gpu && bench.record ? fmt::format(", recorded in {:.2f} s", times.record_s) : "");
  console.info("  {:>10.2f} TFLOP a step, {:.1f} TFLOP/s", times.flop / 1e12, rate);
  const double limit_ms = options.tera_flops > 0 ? times.flop / (options.tera_flops * 1e12) * 1e3 : 0;
  if (limit_ms > 0) {
    console.info("  {:>10.2f} ms is the arithmetic's floor at {:g} TFLOP/s: {:.0f} % of it is reached", limit_ms,
                 options.tera_flops, 100 * limit_ms / median);
  }
  show_kernels(times.kernels, console);
  if (!json_file.empty()) {
    const auto known = [&](double value) {
      return limit_ms > 0 ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
    };
    nlohmann::ordered_json json = {
        {"what", what},
        {"device", name},
        {"figure", median},
        {"unit", "ms"},
        {"limit", known(limit_ms)},
        {"limit_is", fmt::format("matrix products at {:g} TFLOP/s", options.tera_flops)},
        {"fraction_of_limit", known(limit_ms / median)},
        {"repeats", times.step_ms.size()},
        {"cv", cv},
        {"tflop", times.flop / 1e12},
        {"record_s", times.record_s}};
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
  CLI::App* command =
      bench.add_subcommand("step", "a training step: forward, backward, clipping, optimiser and average");
  const auto number = [&](const char* flag, auto& value, const char* meaning) {
    command->add_option(flag, value, meaning)->capture_default_str()->type_name("N");
  };
  command->add_option("--model-size", options->bench.size, "tiny, small, normal or big")
      ->capture_default_str()
      ->type_name("");
  number("--batch-size", options->bench.rows, "clips");
  number("--frames", options->bench.frames, "of each clip");
  number("--tokens", options->bench.tokens, "of each clip");
  number("--repeats", options->bench.repeats, "measurements");
  number("--steps", options->bench.steps_each, "steps in a measurement");
  command->add_option("--device", options->device, "auto, cpu or cuda:N")->capture_default_str()->type_name("");
  command->add_option("--optimization-level", options->level, "basic is float, plain and not recorded")
      ->capture_default_str()
      ->check(CLI::IsMember({"basic", "enhanced", "experimental"}))
      ->type_name("");
  command->add_flag("--kernels", options->kernels, "a table of the step's kernels by time");
  command->add_flag("!--disable-graph-mode", options->bench.record, "launch every kernel of every step");
  command->add_flag("!--disable-fused-kernels", options->bench.fused, "plain operations of libtorch");
  command->add_option("--tera-flops", options->tera_flops, "what the device can do in matrix products, for the floor")
      ->type_name("X");
  add_json_option(*command, program);
  command->callback([&program, options] {
    program.run = [&program, options](Console& console) { return bench_step(*options, program.json_file, console); };
  });
}

}  // namespace myxtts
