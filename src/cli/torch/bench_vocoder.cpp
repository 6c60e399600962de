#include "base/counted.h"
#include "base/error.h"
#include "base/files.h"
#include "cli/commands.h"
#include "device/device.h"
#include "diagnose/oscillation.h"
#include "synth/vocoder_bench.h"

#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

int bench_vocoder(VocoderBench bench, const std::string& device, const std::string& json_file, const Console& console) {
  if (bench.seconds <= 0 || bench.threads < 1 || bench.repeats < 1) {
    reject_input("bench", "--seconds must be above 0, --threads and --repeats at least 1");
  }
  if (device != "cpu") bench.device = parse_device(device);
  const VocoderTimes times = measure_vocoder(bench);
  const SummaryStats waveform = summarize(times.waveform_s);
  const double figure = times.sound_s / waveform.p50, limit = times.sound_s / times.products_s;
  const std::string name =
      bench.device >= 0 ? device_name(bench.device) : "CPU, " + counted(static_cast<uint64_t>(bench.threads), "thread");
  const std::string what = fmt::format("vocoder {} ({:.1f} million parameters), {:g} s of sound", bench.size,
                                       static_cast<double>(times.parameters) / 1e6, bench.seconds);
  console.info("{}, on {}", what, name);
  console.info("  {:>12.0f} x real time  ({:.2f} ms, median of {}, cv {:.1f} %)", figure, waveform.p50 * 1e3,
               times.waveform_s.size(), 100 * waveform.cv);
  console.info("  {:>12.0f} x real time is the limit: its matrix products alone; {:.0f} % of it are reached", limit,
               100 * figure / limit);
  if (!json_file.empty()) {
    const nlohmann::ordered_json json = {{"what", what},
                                         {"device", name},
                                         {"figure", figure},
                                         {"unit", "x real time"},
                                         {"limit", limit},
                                         {"limit_is", "its matrix products alone"},
                                         {"fraction_of_limit", figure / limit},
                                         {"repeats", times.waveform_s.size()},
                                         {"cv", waveform.cv}};
    write_file_atomically(json_file, json.dump(2) + "\n");
  }
  return 0;
}

}  // namespace

void add_bench_vocoder(CLI::App& bench, Program& program) {
  const auto options = std::make_shared<VocoderBench>();
  const auto device = std::make_shared<std::string>("cpu");
  CLI::App* command = bench.add_subcommand("vocoder", "a vocoder alone, from mel to samples");
  const auto add = [&](const char* flag, auto& value, const char* meaning, const char* type) {
    return command->add_option(flag, value, meaning)->capture_default_str()->type_name(type);
  };
  add("--model-size", options->size, "tiny or base", "");
  add("--preset", options->preset, "mel preset", "NAME");
  add("--seconds", options->seconds, "of sound", "S");
  add("--device", *device, "cpu or cuda:N", "");
  CLI::Option* threads = add("--threads", options->threads, "on the CPU", "N");
  add("--repeats", options->repeats, "measurements", "N");
  add_json_option(*command, program);
  command->callback([&program, options, device, threads] {
    if (threads->count() > 0 && *device != "cpu") {
      reject_input("bench", "--threads is of the CPU", way_out("leave it or --device {} out", *device));
    }
    program.run = [&program, options, device](Console& console) {
      return bench_vocoder(*options, *device, program.json_file, console);
    };
  });
}

}  // namespace myxtts
