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
};

int bench_step(const Options& options, const std::string& json_file, const Console& console) {
  StepBench bench = options.bench;
  if (bench.rows < 1 || bench.tokens < 1 || bench.frames < bench.tokens || bench.repeats < 1 || bench.steps_each < 1) {
    reject_input("bench",
                 "--batch-size, --tokens, --repeats and --steps must be at least 1, --frames at least --tokens");
  }
  const bool gpu = options.device == "auto" ? device_count() > 0 : options.device != "cpu";
  if (gpu) bench.device = parse_device(options.device == "auto" ? "cuda:0" : options.device);
  bench.half = bench.record = options.level != "basic";
  const StepTimes times = measure_step(bench);
  const Spread step = spread_of(times.step_ms);
  const double median = step.p50, cv = step.variation;
  const double rate = times.flop / (median * 1e-3) / 1e12;
  const std::string name = gpu ? device_name(bench.device) : "CPU";
  const std::string what =
      fmt::format("step, {} ({:.1f} million weights), {} x {} frames x {} tokens, {}", bench.size,
                  static_cast<double>(times.parameters) / 1e6, bench.rows, bench.frames, bench.tokens,
                  !gpu         ? "float"
                  : bench.half ? "bfloat16, recorded"
                               : "float, not recorded");
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
  if (!json_file.empty()) {
    const auto known = [&](double value) {
      return limit_ms > 0 ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
    };
    const nlohmann::ordered_json json = {
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
  command->add_option("--optimization-level", options->level, "basic is float and not recorded")
      ->capture_default_str()
      ->check(CLI::IsMember({"basic", "enhanced", "experimental"}))
      ->type_name("");
  command->add_option("--tera-flops", options->tera_flops, "what the device can do in matrix products, for the floor")
      ->type_name("X");
  add_json_option(*command, program);
  command->callback([&program, options] {
    program.run = [&program, options](Console& console) { return bench_step(*options, program.json_file, console); };
  });
}

}  // namespace myxtts
