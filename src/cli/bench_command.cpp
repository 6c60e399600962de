#include "base/files.h"
#include "cli/commands.h"
#include "diagnose/oscillation.h"
#include "session/mel_bench.h"

#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

int run_bench_mel(const MelBench& bench, const std::string& json_file, const Console& console) {
  const MelBenchResult result = bench_mel(bench);
  const SummaryStats batch = summarize(result.batch_s);
  const double times_real_time = bench.clips * bench.seconds / batch.p50;
  const double fraction = times_real_time / result.limit_times_real_time;
  console.info("log-mel, preset {}, batch {} x {:g} s, on {}", bench.preset, bench.clips, bench.seconds, result.device);
  console.info("  {:>12.0f} x real time  ({:.1f} us per batch, median of {}, cv {:.1f} %)", times_real_time,
               batch.p50 * 1e6, result.batch_s.size(), 100 * batch.cv);
  console.info("  {:>12.0f} x real time is the limit: {}", result.limit_times_real_time, result.limit);
  console.info("  {:>11.0f} % of the limit", 100 * fraction);
  if (!json_file.empty()) {
    const nlohmann::ordered_json json = {
        {"what", fmt::format("log-mel {} batch {} x {:g} s", bench.preset, bench.clips, bench.seconds)},
        {"device", result.device},
        {"figure", times_real_time},
        {"unit", "x real time"},
        {"limit", result.limit_times_real_time},
        {"limit_is", result.limit},
        {"fraction_of_limit", fraction},
        {"repeats", result.batch_s.size()},
        {"cv", batch.cv}};
    write_file_atomically(json_file, json.dump(2) + "\n");
  }
  return 0;
}

}  // namespace

void add_bench_command(CLI::App& app, Program& program) {
  CLI::App* bench = app.add_subcommand("bench", "measure the README's claims on this machine");
  bench->require_subcommand(1);
  const auto options = std::make_shared<MelBench>();
  CLI::App* mel = bench->add_subcommand("mel", "log-mel alone, samples in memory, with the limit beside it");
  mel->add_option("--preset", options->preset, "mel preset")->capture_default_str()->type_name("NAME");
  mel->add_option("--device", options->device, "cpu or cuda:N")->capture_default_str()->type_name("");
  mel->add_option("--clips", options->clips, "clips per batch")->capture_default_str()->type_name("N");
  mel->add_option("--seconds", options->seconds, "length of a clip")->capture_default_str()->type_name("S");
  mel->add_option("--repeats", options->repeats, "measurements")->capture_default_str()->type_name("N");
  add_json_option(*mel, program);
  mel->callback([&program, options] {
    program.run = [&program, options](Console& console) { return run_bench_mel(*options, program.json_file, console); };
  });
  add_bench_loader(*bench, program);
  add_bench_step(*bench, program);
  add_bench_vocoder(*bench, program);
  add_bench_synth(*bench, program);
}

}  // namespace myxtts
