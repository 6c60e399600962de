#include "base/counted.h"
#include "base/files.h"
#include "cli/session_console.h"
#include "session/loader_bench.h"

#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

struct Options {
  LoaderBench bench;
  ConfigFlags flags;
};

void print(const LoaderBenchResult& result, int64_t epochs, const Console& console) {
  const LoaderOptions& loader = result.feed.loader;
  const LoaderStats& stats = result.stats;
  const auto percent = [&](double seconds) { return 100 * result.share(seconds); };
  const double speed = result.times_real_time.p50;
  console.info("loader, {} of {} per epoch, {}, on {}", counted(result.batches_per_epoch, "batch", "batches"),
               result.batch_size, counted(loader.workers, "worker"), result.device);
  console.info("  {:>12.0f} x real time  (median of {} epochs, cv {:.1f} %)", speed, epochs,
               100 * result.times_real_time.cv);
  console.info("  {:>12.0f} x real time is the limit: {}", result.limit, result.limit_is);
  console.info("  {:>11.0f} % of the limit", 100 * speed / result.limit);
  console.info(
      "  the consumer waits {:.2f} % of the time, finishing waits for rows {:.0f} %, the plan for room {:.0f} %",
      percent(stats.consumer_waits_s), percent(stats.finish_waits_for_rows_s), percent(stats.plan_waits_for_room_s));
  console.info("  {:.2f} ms from batch to batch, std/mean {:.2f}", result.batch_ms, result.batch_cv);
  console.info("  beginning batches takes {:.0f} % of the time, finishing them {:.0f} %", percent(stats.begin_busy_s),
               percent(stats.finish_busy_s));
  console.info("  workers are busy {:.0f} %, {:.1f} CPU cores in all, {:.2f} GB read",
               percent(stats.rows_busy_s) / static_cast<double>(loader.workers), result.share(result.cpu_s),
               static_cast<double>(stats.bytes_read) * 1e-9);
}

nlohmann::ordered_json to_json(const LoaderBenchResult& result, const Options& options, const std::string& corpus) {
  const LoaderOptions& loader = result.feed.loader;
  const LoaderStats& stats = result.stats;
  const double speed = result.times_real_time.p50;
  return {{"what", fmt::format("loader, {}", corpus)},
          {"device", result.device},
          {"figure", speed},
          {"unit", "x real time"},
          {"limit", result.limit},
          {"limit_is", result.limit_is},
          {"fraction_of_limit", speed / result.limit},
          {"repeats", options.bench.repeats},
          {"cv", result.times_real_time.cv},
          {"workers", loader.workers},
          {"batch_size", result.batch_size},
          {"gpu_cache_mb", loader.gpu_cache_bytes >> 20},
          {"host_cache_mb", loader.host_cache_bytes >> 20},
          {"consumer_ms", options.bench.consumer_ms},
          {"input_wait", result.share(stats.consumer_waits_s)},
          {"finish_waits_for_rows", result.share(stats.finish_waits_for_rows_s)},
          {"plan_waits_for_room", result.share(stats.plan_waits_for_room_s)},
          {"batch_ms", result.batch_ms},
          {"batch_ms_cv", result.batch_cv},
          {"batches", stats.batches},
          {"resident_mb", result.resident_mb},
          {"resident_drift", result.resident_drift},
          {"native", loader.native},
          {"begin_busy", result.share(stats.begin_busy_s)},
          {"finish_busy", result.share(stats.finish_busy_s)},
          {"workers_busy", result.share(stats.rows_busy_s) / static_cast<double>(loader.workers)},
          {"cpu_cores_used", result.share(result.cpu_s)},
          {"bytes_read", stats.bytes_read}};
}

int run_bench_loader(const Options& options, const std::string& json_file, const Console& console) {
  const Config config = options.flags.load().values;
  SessionConsole session(console);
  const LoaderBenchResult result = bench_loader(options.bench, config, session.listener());
  print(result, options.bench.repeats, console);
  if (!json_file.empty()) {
    write_file_atomically(json_file, to_json(result, options, config.data.train_data).dump(2) + "\n");
  }
  return 0;
}

}  // namespace

void add_bench_loader(CLI::App& bench, Program& program) {
  const auto options = std::make_shared<Options>();
  CLI::App* loader = bench.add_subcommand("loader", "a corpus from its files to ready batches, epoch after epoch");
  loader->add_option("--repeats", options->bench.repeats, "epochs")->capture_default_str()->type_name("N");
  const auto cache = [&](const char* flag, int64_t& megabytes, const char* meaning) {
    loader->add_option(flag, megabytes, meaning)->check(CLI::NonNegativeNumber)->type_name("MB");
  };
  cache("--gpu-cache-mb", options->bench.gpu_cache_mb, "clips cached in GPU memory [as for training]");
  cache("--host-cache-mb", options->bench.host_cache_mb, "clips cached in pinned memory [as for training]");
  loader->add_option("--consumer-ms", options->bench.consumer_ms, "duration of a simulated step")
      ->capture_default_str()
      ->type_name("MS");
  add_json_option(*loader, program);
  add_config_flags(*loader, options->flags, Command::bench);
  loader->callback([&program, options] {
    program.run = [&program, options](Console& console) {
      return run_bench_loader(*options, program.json_file, console);
    };
  });
}

}  // namespace myxtts
