#include "session/loader_bench.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "base/workers.h"
#include "features/mel.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace myxtts {
namespace {

double resident_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return static_cast<double>(std::stoll(line.substr(6))) / 1024;
  }
  return 0;
}

// What was counted since `before`; what is a state and not a sum stays as it is.
LoaderStats since(LoaderStats now, const LoaderStats& before) {
  now.bytes_read -= before.bytes_read;
  now.rows_busy_s -= before.rows_busy_s;
  now.begin_busy_s -= before.begin_busy_s;
  now.finish_busy_s -= before.finish_busy_s;
  now.plan_waits_for_room_s -= before.plan_waits_for_room_s;
  now.finish_waits_for_rows_s -= before.finish_waits_for_rows_s;
  now.consumer_waits_s -= before.consumer_waits_s;
  return now;
}

void set_caches(const LoaderBench& bench, LoaderOptions& loader) {
  const auto set = [&](const char* flag, int64_t megabytes, uint64_t& bytes) {
    if (megabytes < 0) return;
    if (megabytes > 0 && loader.device < 0) {
      reject_input("bench", "{} is {}, but no GPU makes batches", flag, megabytes);
    }
    bytes = static_cast<uint64_t>(megabytes) << 20;
  };
  set("--gpu-cache-mb", bench.gpu_cache_mb, loader.gpu_cache_bytes);
  set("--host-cache-mb", bench.host_cache_mb, loader.host_cache_bytes);
}

void set_limit(const MelSpec& mel, LoaderBenchResult& result) {
  const int device = result.feed.loader.device;
  if (device >= 0) {
    result.limit = measure_upload_bytes_per_s(device) / (2.0 * mel.sample_rate);
    result.limit_is = "16-bit samples at the measured PCIe bandwidth";
    result.device = device_name(device);
  } else {
    const auto cores = static_cast<double>(available_cores());
    result.limit = mel_cpu_limit_frames_per_s(mel) * cores * mel.hop_length / mel.sample_rate;
    result.limit_is = "the arithmetic of the mel at the cores' measured peak";
    result.device = fmt::format("{} CPU cores", available_cores());
  }
}

// Sums, not a list: memory must stay flat however long it runs.
struct BatchSums {
  double count = 0, ms = 0, ms_squared = 0;
  uint64_t all = 0;  // with the warm-up
  double resident_before_mb = 0;

  double mean() const { return ms / count; }
  double cv() const { return std::sqrt(std::max(0.0, ms_squared / count - mean() * mean())) / mean(); }
};

// Returns the seconds of audio.
double run_epoch(BatchSource& loader, uint64_t batches, double consumer_ms, BatchSums& sums) {
  constexpr uint64_t warm_batches = 1000;  // after which the allocator's pools have settled
  double audio_s = 0;
  for (uint64_t i = 0; i < batches; ++i) {
    const Stopwatch batch;
    audio_s += loader.next()->seconds;
    if (consumer_ms > 0) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(consumer_ms));
    const double ms = batch.ms();
    sums.count += 1, sums.ms += ms, sums.ms_squared += ms * ms;
    if (++sums.all == warm_batches) sums.resident_before_mb = resident_mb();
  }
  return audio_s;
}

void measure(BatchSource& loader, int device, const LoaderBench& bench, LoaderBenchResult& result) {
  std::optional<DeviceTimer> timer;
  if (device >= 0) timer.emplace(device);
  LoaderStats before;
  std::vector<double> speeds;
  BatchSums sums;
  double cpu_before_s = 0;
  Stopwatch whole;
  for (int64_t repeat = -1; repeat < bench.repeats; ++repeat) {
    if (repeat == 0) {
      before = loader.stats(), cpu_before_s = cpu_seconds();
      sums.count = sums.ms = sums.ms_squared = 0;
      whole.restart();
    }
    const Stopwatch epoch;
    const double audio_s = run_epoch(loader, result.batches_per_epoch, bench.consumer_ms, sums);
    if (timer) timer->start(), timer->stop_ms();  // all that was queued for the consumer is done
    if (repeat >= 0) speeds.push_back(audio_s / epoch.seconds());
  }
  result.wall_s = whole.seconds(), result.cpu_s = cpu_seconds() - cpu_before_s;
  result.stats = since(loader.stats(), before);
  result.times_real_time = summarize(speeds);
  result.batch_ms = sums.mean(), result.batch_cv = sums.cv();
  result.resident_mb = resident_mb();
  const double resident_before_mb = sums.resident_before_mb > 0 ? sums.resident_before_mb : result.resident_mb;
  result.resident_drift = (result.resident_mb - resident_before_mb) / resident_before_mb;
}

}  // namespace

LoaderBenchResult bench_loader(const LoaderBench& bench, const Config& config, const SessionListener& listener) {
  if (bench.repeats < 1 || bench.consumer_ms < 0) {
    reject_input("bench", "--repeats must be at least 1, --consumer-ms at least 0");
  }
  const Mode mode = choose_devices(config, listener);
  const PlannedCorpus planned = open_planned_corpus("bench", config, CorpusPart::training, listener);
  LoaderBenchResult result;
  result.feed = plan_feed(config, planned.corpus, planned.plan, mode);
  set_caches(bench, result.feed.loader);
  result.batches_per_epoch = planned.plan.batches_per_epoch();
  result.batch_size = planned.plan.shapes().front().batch_size;
  const std::unique_ptr<BatchSource> source = open_batches(result.feed, config, planned, listener);
  measure(*source, mode.model_device, bench, result);
  set_limit(planned.corpus.mel, result);
  return result;
}

}  // namespace myxtts
