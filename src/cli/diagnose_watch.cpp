#include "base/error.h"
#include "base/files.h"
#include "cli/diagnose_command.h"
#include "cli/gpu_panel.h"

#include <chrono>
#include <cmath>
#include <csignal>
#include <map>
#include <memory>
#include <thread>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

using Json = nlohmann::ordered_json;
using Metric = std::optional<double> GpuSample::*;

struct Options {
  int gpu = 0;
  double seconds = 30, interval_ms = 50;
  std::string csv_file;
};

volatile std::sig_atomic_t interrupted = 0;

// While it lives, Ctrl-C (or a kind `kill`) ends the watching and not the program.
class InterruptGuard {
 public:
  InterruptGuard() : before_int_(std::signal(SIGINT, note)), before_term_(std::signal(SIGTERM, note)) {}
  ~InterruptGuard() {
    std::signal(SIGINT, before_int_);
    std::signal(SIGTERM, before_term_);
  }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  using Handler = void (*)(int);
  static void note(int) { interrupted = 1; }
  Handler before_int_, before_term_;
};

constexpr std::pair<const char*, Metric> csv_columns[] = {{"utilisation_percent", &GpuSample::utilisation_percent},
                                                          {"sm_active_percent", &GpuSample::sm_active_percent},
                                                          {"tensor_active_percent", &GpuSample::tensor_active_percent},
                                                          {"memory_used_mb", &GpuSample::memory_used_mb},
                                                          {"power_w", &GpuSample::power_w},
                                                          {"sm_mhz", &GpuSample::sm_mhz},
                                                          {"memory_mhz", &GpuSample::memory_mhz},
                                                          {"temperature_c", &GpuSample::temperature_c},
                                                          {"pcie_to_gpu_mb_s", &GpuSample::pcie_to_gpu_mb_s},
                                                          {"pcie_from_gpu_mb_s", &GpuSample::pcie_from_gpu_mb_s}};

// One row per sample; a metric that the card does not report is an empty cell.
class CsvFile {
 public:
  explicit CsvFile(const std::string& path) : file_(path) {
    std::string header = "time_s";
    for (const auto& [name, metric] : csv_columns) header += fmt::format(",{}", name);
    write(header + ",throttled\n");
  }
  void add(const TimedSample& sample) {
    std::string row = fmt::format("{:.4f}", sample.at_s);
    for (const auto& [name, metric] : csv_columns) {
      const std::optional<double>& value = sample.gpu.*metric;
      row += value ? fmt::format(",{:.6g}", *value) : ",";
    }
    write(fmt::format("{},\"{}\"\n", row, sample.gpu.throttled));
  }
  void finish() { file_.finish(); }

 private:
  void write(std::string_view text) { file_.write(std::as_bytes(std::span(text))); }
  FileWriter file_;
};

struct Watched {
  std::vector<TimedSample> samples;
  double sampling_s = 0;  // spent in asking the driver, of all samples together
  size_t sampled = 0;
};

// Until the time is over or Ctrl-C; `each` is called after every sample.
template <typename Each>
Watched watch(GpuReadings& gpu, const Options& options, const Each& each) {
  constexpr size_t most_samples = 200'000;  // without an end, the newest hours are what counts
  const InterruptGuard guard;
  const Stopwatch clock;
  const double interval_s = options.interval_ms * 1e-3;
  Watched watched;
  PcieTraffic pcie;
  double due_s = 0, pcie_at_s = -1;
  do {
    due_s += interval_s * std::max(1.0, std::ceil((clock.seconds() - due_s) / interval_s));
    std::this_thread::sleep_for(std::chrono::duration<double>(due_s - clock.seconds()));
    if (watched.samples.size() == most_samples) {
      watched.samples.erase(watched.samples.begin(), watched.samples.begin() + most_samples / 2);
    }
    const Stopwatch asking;
    TimedSample& sample = watched.samples.emplace_back();
    sample.at_s = clock.seconds();
    sample.gpu = gpu.sample();
    watched.sampling_s += asking.seconds(), ++watched.sampled;
    if (!sample.gpu.pcie_to_gpu_mb_s) {  // the card does not count: once per second the driver does, for 40 ms
      if (sample.at_s - pcie_at_s >= 1) pcie = gpu.measure_pcie(), pcie_at_s = sample.at_s;
      sample.gpu.pcie_to_gpu_mb_s = pcie.to_gpu_mb_s, sample.gpu.pcie_from_gpu_mb_s = pcie.from_gpu_mb_s;
    }
    each(std::span<const TimedSample>(watched.samples));
  } while (interrupted == 0 && (options.seconds == 0 || clock.seconds() + interval_s <= options.seconds));
  return watched;
}

std::optional<SummaryStats> summary_of(const Watched& watched, Metric metric) {
  std::vector<double> values;
  for (const TimedSample& sample : watched.samples) {
    if (const auto& value = sample.gpu.*metric) values.push_back(*value);
  }
  return values.empty() ? std::nullopt : std::optional(summarize(values));
}

// Each reason and the share of samples that had it.
std::map<std::string, double> throttling(const Watched& watched) {
  std::map<std::string, double> shares;
  for (const TimedSample& sample : watched.samples) {
    if (!sample.gpu.throttled.empty()) {
      shares[sample.gpu.throttled] += 1.0 / static_cast<double>(watched.samples.size());
    }
  }
  return shares;
}

Json as_json(const Options& options, const GpuReadings& gpu, const Watched& watched, const WatchVerdict& verdict) {
  const auto known = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  const auto mean = [&](Metric metric) {
    const auto spread = summary_of(watched, metric);
    return spread ? Json(spread->mean) : Json();
  };
  const auto most = [&](Metric metric) {
    const auto spread = summary_of(watched, metric);
    return spread ? Json(spread->max) : Json();
  };
  const SummaryStats& use = verdict.utilisation;
  return {
      {"gpu", options.gpu},
      {"name", gpu.name()},
      {"seconds", watched.samples.back().at_s - watched.samples.front().at_s + options.interval_ms * 1e-3},
      {"samples", watched.samples.size()},
      {"source", verdict.by_sm_activity ? "sm_activity" : "nvml_utilisation"},
      {"utilisation",
       {{"mean", use.mean}, {"std", use.std}, {"p5", use.p5}, {"p50", use.p50}, {"p95", use.p95}, {"max", use.max}}},
      {"verdict", name_of(verdict.use)},
      {"sentence", verdict.sentence},
      {"period_s", known(verdict.period_s)},
      {"nvml_utilisation", mean(&GpuSample::utilisation_percent)},
      {"sm_active", mean(&GpuSample::sm_active_percent)},
      {"tensor_active", mean(&GpuSample::tensor_active_percent)},
      {"power_w", mean(&GpuSample::power_w)},
      {"power_limit_w", known(gpu.limits().power_w)},
      {"memory_mb", most(&GpuSample::memory_used_mb)},
      {"memory_total_mb", known(gpu.limits().memory_mb)},
      {"sm_mhz", mean(&GpuSample::sm_mhz)},
      {"sm_mhz_limit", known(gpu.limits().sm_mhz)},
      {"memory_mhz", mean(&GpuSample::memory_mhz)},
      {"memory_mhz_limit", known(gpu.limits().memory_mhz)},
      {"temperature_c", most(&GpuSample::temperature_c)},
      {"pcie_to_gpu_mb_s", mean(&GpuSample::pcie_to_gpu_mb_s)},
      {"pcie_from_gpu_mb_s", mean(&GpuSample::pcie_from_gpu_mb_s)},
      {"throttled", throttling(watched)},
      {"sample_us", 1e6 * watched.sampling_s / static_cast<double>(watched.sampled)}};
}

void tell(const Watched& watched, const WatchVerdict& verdict, const Console& console) {
  const SummaryStats& use = verdict.utilisation;
  console.info("{}", verdict.sentence);
  console.info(
      "  {:.0f} % at the 5th percentile, {:.0f} % at the 50th, {:.0f} % at the 95th, {:.0f} % at most; {} samples",
      use.p5, use.p50, use.p95, use.max, watched.samples.size());
  console.info("  judged by {}", verdict.by_sm_activity
                                     ? "SM activity from sample to sample"
                                     : "NVML's utilisation, a mean over up to a second: shorter waits do not show");
  for (const auto& [reason, share] : throttling(watched)) {
    console.info("  clocks were held down {:.0f} % of the time: {}", 100 * share, reason);
  }
}

int diagnose_watch(const Options& options, const std::string& json_file, const Console& console) {
  // Negated, so that what is not a number is refused as well.
  if (!(options.seconds >= 0) || !(options.interval_ms >= 5 && options.interval_ms <= 1000)) {
    reject_input("watch", "--seconds must be 0 or more, --interval-ms from 5 to 1000");
  }
  GpuReadings gpu = GpuReadings::of_number(options.gpu);
  std::optional<CsvFile> csv;
  if (!options.csv_file.empty()) csv.emplace(options.csv_file);
  const std::string title = fmt::format("GPU {}, {}", options.gpu, gpu.name());
  const bool redraws = console.redraws_results();
  if (!redraws) console.info("{}", title);
  GpuPanel panel(title, gpu.limits());
  double shown_s = -1;
  const Watched watched = watch(gpu, options, [&](std::span<const TimedSample> samples) {
    const TimedSample& last = samples.back();
    if (csv) csv->add(last);
    const double every_s = redraws ? 0.2 : 1;
    if (std::floor(last.at_s / every_s) == std::floor(shown_s / every_s)) return;
    shown_s = last.at_s;
    if (redraws) {
      panel.draw(samples, options.seconds);
    } else {
      console.info("{:6.1f} s  {}", last.at_s, gpu_line(last.gpu, gpu.limits()));
      std::fflush(stdout);
    }
  });
  const WatchVerdict verdict = judge(watched.samples);
  tell(watched, verdict, console);
  if (csv) csv->finish();
  if (!json_file.empty()) {
    write_file_atomically(json_file, as_json(options, gpu, watched, verdict).dump(2) + "\n");
  }
  return verdict.use == GpuUse::steady ? 0 : 1;
}

}  // namespace

void add_diagnose_watch(CLI::App& diagnose, Program& program) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = diagnose.add_subcommand(
      "watch",
      "a GPU's readings, live, whichever program uses it; says whether it is steady, fluctuating or under-used");
  command->add_option("--gpu", options->gpu, "its number in nvidia-smi")->capture_default_str()->type_name("N");
  command->add_option("--seconds", options->seconds, "how long; 0 until Ctrl-C")->capture_default_str()->type_name("S");
  command->add_option("--interval-ms", options->interval_ms, "time between samples")
      ->capture_default_str()
      ->type_name("MS");
  command->add_option("--csv", options->csv_file, "write every sample to this file")->type_name("FILE");
  add_json_option(*command, program);
  command->footer("Exit status: 0 steady, 1 fluctuating or under-used, 2 no such GPU.");
  command->callback([&program, options] {
    program.run = [&program, options](Console& console) {
      return diagnose_watch(*options, program.json_file, console);
    };
  });
}

}  // namespace myxtts
