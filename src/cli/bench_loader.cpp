#include "base/clock.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/files.h"
#include "base/process.h"
#include "base/workers.h"
#include "cli/corpus_flags.h"
#include "diagnose/oscillation.h"
#include "features/mel.h"
#include "plan/shapes.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

struct Options {
  int64_t repeats = 10, gpu_cache_mb = -1, host_cache_mb = -1;  // -1: as for training
  double consumer_ms = 0;
  ConfigFlags flags;
};

int64_t resident_kb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6));
  }
  return 0;
}

struct Measured {
  std::vector<double> times_real_time;                         // per epoch
  double batch_count = 0, batch_ms = 0, batch_ms_squared = 0;  // sums, from one batch to the next
  int64_t resident_kb_before = 0, resident_kb_after = 0;
  double wall_s = 0, cpu_s = 0, consumer_wait_s = 0;
  LoaderStats before, after;
};

// Whole epochs, one after the other; the first one warms caches.
Measured run(BatchSource& loader, int device, const BatchPlan& plan, const Options& wanted) {
  std::optional<DeviceTimer> timer;
  if (device >= 0) timer.emplace(device);
  Measured measured;
  Stopwatch whole;
  double cpu_before_s = 0;
  constexpr uint64_t warm_batches = 1000;
  uint64_t batches = 0;
  for (int64_t repeat = -1; repeat < wanted.repeats; ++repeat) {
    if (repeat == 0) measured.before = loader.stats(), cpu_before_s = cpu_seconds(), whole = Stopwatch();
    const Stopwatch watch;
    double seconds_of_audio = 0;
    for (uint64_t i = 0; i < plan.batches_per_epoch(); ++i) {
      const Stopwatch batch;
      seconds_of_audio += loader.next().seconds;
      if (wanted.consumer_ms > 0) {
        std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(wanted.consumer_ms));
      }
      if (repeat >= 0) {
        const double ms = batch.ms();
        measured.batch_count += 1, measured.batch_ms += ms, measured.batch_ms_squared += ms * ms;
      }
      if (++batches == warm_batches) measured.resident_kb_before = resident_kb();
    }
    if (timer) timer->start(), timer->stop_ms();  // all that was queued for the consumer is done
    if (repeat >= 0) measured.times_real_time.push_back(seconds_of_audio / (watch.ms() * 1e-3));
  }
  measured.wall_s = whole.ms() * 1e-3, measured.cpu_s = cpu_seconds() - cpu_before_s;
  measured.after = loader.stats();
  measured.resident_kb_after = resident_kb();
  if (measured.resident_kb_before == 0) measured.resident_kb_before = measured.resident_kb_after;
  measured.consumer_wait_s = measured.after.consumer_waits_s - measured.before.consumer_waits_s;
  return measured;
}

int bench_loader(const Options& options, const std::string& json_file, const Console& console) {
  if (options.repeats < 1 || options.consumer_ms < 0) {
    reject_input("bench", "--repeats must be at least 1, --consumer-ms at least 0");
  }
  const Config config = options.flags.load().values;
  const DataConfig& data = config.data;
  if (data.train_data.empty()) reject_input("bench", "no corpus is named", way_out("give --train-data DIR"));
  const Mode mode = choose_mode_loudly(config, console);
  const Corpus corpus = open_corpus_loudly(data.train_data, config, {}, console);
  if (corpus.index.size() == 0)
    reject_input("bench", "{} has no clip that can be used", data.train_data, way_out("see `prepare`"));
  const BatchPlan plan(plan_shapes(corpus.index.lengths(), data).shapes, static_cast<uint64_t>(config.training.seed));
  Feed feed = plan_feed(config, corpus, plan, mode);
  const LoaderOptions& loader = feed.loader;
  const auto set = [&](const char* flag, int64_t megabytes, uint64_t& bytes) {
    if (megabytes < 0) return;
    if (megabytes > 0 && loader.device < 0)
      reject_input("bench", "{} is {}, but no GPU makes batches", flag, megabytes);
    bytes = static_cast<uint64_t>(megabytes) << 20;
  };
  set("--gpu-cache-mb", options.gpu_cache_mb, feed.loader.gpu_cache_bytes);
  set("--host-cache-mb", options.host_cache_mb, feed.loader.host_cache_bytes);
  const std::unique_ptr<BatchSource> source = open_feed_loudly(feed, config, corpus, plan, console);
  const Measured measured = run(*source, mode.model_device, plan, options);

  const size_t epochs = measured.times_real_time.size();
  const Spread speed = spread_of(measured.times_real_time);
  const double figure = speed.p50, cv = speed.variation;
  const MelSpec& mel = corpus.mel;
  const bool on_gpu = loader.device >= 0;
  const double limit = on_gpu ? measure_upload_bytes_per_s(loader.device) / (2.0 * mel.sample_rate)
                              : mel_cpu_limit_frames_per_s(mel) * static_cast<double>(available_cores()) *
                                    mel.hop_length / mel.sample_rate;
  const char* const limit_is = on_gpu ? "16-bit samples at the measured speed of the wire to the GPU"
                                      : "the arithmetic of the mel at the cores' measured peak";
  const std::string name = on_gpu ? device_name(loader.device) : fmt::format("{} CPU cores", available_cores());
  const double busy = (measured.after.rows_busy_s - measured.before.rows_busy_s) /
                      (measured.wall_s * static_cast<double>(loader.workers));
  const double finish_wait =
      (measured.after.finish_waits_for_rows_s - measured.before.finish_waits_for_rows_s) / measured.wall_s;
  const double room_wait =
      (measured.after.plan_waits_for_room_s - measured.before.plan_waits_for_room_s) / measured.wall_s;
  const double begin_busy = (measured.after.begin_busy_s - measured.before.begin_busy_s) / measured.wall_s;
  const double finish_busy = (measured.after.finish_busy_s - measured.before.finish_busy_s) / measured.wall_s;
  const double input_wait = measured.consumer_wait_s / measured.wall_s;
  const uint64_t bytes = measured.after.bytes_read - measured.before.bytes_read;

  const double batch_mean = measured.batch_ms / measured.batch_count;
  const double batch_variance =
      std::max(0.0, measured.batch_ms_squared / measured.batch_count - batch_mean * batch_mean);
  const double drift = static_cast<double>(measured.resident_kb_after - measured.resident_kb_before) /
                       static_cast<double>(measured.resident_kb_before);

  console.info("loader, {} of {} an epoch, {}, on {}", counted(plan.batches_per_epoch(), "batch", "batches"),
               plan.shapes().front().batch_size, counted(loader.workers, "worker"), name);
  console.info("  {:>12.0f} x real time  (median of {} epochs, cv {:.1f} %)", figure, epochs, 100 * cv);
  console.info("  {:>12.0f} x real time is the limit: {}", limit, limit_is);
  console.info("  {:>11.0f} % of the limit", 100 * figure / limit);
  console.info(
      "  the consumer waits {:.2f} % of the time, finishing waits for rows {:.0f} %, the plan for room {:.0f} %",
      100 * input_wait, 100 * finish_wait, 100 * room_wait);
  console.info("  {:.2f} ms from batch to batch, spread (std/mean) {:.2f}", batch_mean,
               std::sqrt(batch_variance) / batch_mean);
  console.info("  beginning batches takes {:.0f} % of the time, finishing them {:.0f} %", 100 * begin_busy,
               100 * finish_busy);
  console.info("  workers are busy {:.0f} %, {:.1f} CPU cores in all, {:.2f} GB read", 100 * busy,
               measured.cpu_s / measured.wall_s, static_cast<double>(bytes) * 1e-9);
  if (!json_file.empty()) {
    const nlohmann::ordered_json json = {{"what", fmt::format("loader, {}", data.train_data)},
                                         {"device", name},
                                         {"figure", figure},
                                         {"unit", "x real time"},
                                         {"limit", limit},
                                         {"limit_is", limit_is},
                                         {"fraction_of_limit", figure / limit},
                                         {"repeats", epochs},
                                         {"cv", cv},
                                         {"workers", loader.workers},
                                         {"batch_size", plan.shapes().front().batch_size},
                                         {"gpu_cache_mb", loader.gpu_cache_bytes >> 20},
                                         {"host_cache_mb", loader.host_cache_bytes >> 20},
                                         {"consumer_ms", options.consumer_ms},
                                         {"input_wait", input_wait},
                                         {"finish_waits_for_rows", finish_wait},
                                         {"plan_waits_for_room", room_wait},
                                         {"batch_ms", batch_mean},
                                         {"batch_ms_cv", std::sqrt(batch_variance) / batch_mean},
                                         {"batches", measured.after.batches},
                                         {"resident_mb", static_cast<double>(measured.resident_kb_after) / 1024},
                                         {"resident_drift", drift},
                                         {"native", loader.native},
                                         {"begin_busy", begin_busy},
                                         {"finish_busy", finish_busy},
                                         {"workers_busy", busy},
                                         {"cpu_cores_used", measured.cpu_s / measured.wall_s},
                                         {"bytes_read", bytes}};
    write_file_atomically(json_file, json.dump(2) + "\n");
  }
  return 0;
}

}  // namespace

void add_bench_loader(CLI::App& bench, Program& program) {
  const auto options = std::make_shared<Options>();
  CLI::App* loader = bench.add_subcommand("loader", "a corpus from its files to ready batches, epoch after epoch");
  loader->add_option("--repeats", options->repeats, "epochs")->capture_default_str()->type_name("N");
  const auto cache = [&](const char* flag, int64_t& megabytes, const char* meaning) {
    loader->add_option(flag, megabytes, meaning)->check(CLI::NonNegativeNumber)->type_name("MB");
  };
  cache("--gpu-cache-mb", options->gpu_cache_mb, "clips kept in GPU memory [as for training]");
  cache("--host-cache-mb", options->host_cache_mb, "clips kept in page-locked memory [as for training]");
  loader->add_option("--consumer-ms", options->consumer_ms, "what a step takes")
      ->capture_default_str()
      ->type_name("MS");
  add_json_option(*loader, program);
  add_config_flags(*loader, options->flags, Command::bench);
  loader->callback([&program, options] {
    program.run = [&program, options](Console& console) { return bench_loader(*options, program.json_file, console); };
  });
}

}  // namespace myxtts
