#include "diagnose/run_diagnosis.h"

#include "base/error.h"

#include <algorithm>
#include <cmath>

namespace myxtts {
namespace {

std::vector<double> values_of(const RunRecord& run, const char* metric) {
  std::vector<double> values;
  const auto found = run.metrics.find(metric);
  if (found == run.metrics.end()) return values;
  for (const Point& point : found->second) {
    if (std::isfinite(point.y)) values.push_back(point.y);
  }
  return values;
}

double mean_of(const std::vector<double>& values) { return summarize(values).mean; }

// Per line of metrics, which is a mean over the steps since the previous line.
void find_period(Diagnosis& result, const std::vector<double>& step_ms) {
  result.batch_ms = summarize(step_ms);
  result.steady_cv = result.batch_ms.cv;
  result.oscillating = result.steady_cv > cyclic_cv;
  if (!result.oscillating) return;
  const std::optional<double> period = period_of(step_ms);
  if (period && *period * 3 <= static_cast<double>(step_ms.size())) {
    result.period_batches = period, result.period_seen_in = "lines of metrics.jsonl";
  }
}

void load_stages(Diagnosis& result, const RunRecord& run) {
  const std::vector<double> reading = values_of(run, "loader_reading");
  if (reading.empty()) return;
  const double consumer = 1 - result.input_wait_fraction;
  result.stages = {{Stage::reading, mean_of(reading)},
                   {Stage::decoding, mean_of(values_of(run, "loader_decoding"))},
                   {Stage::features, mean_of(values_of(run, "loader_features"))},
                   {Stage::consumer, consumer, result.consumer_ms}};
}

Cause cause_of(Diagnosis& result, double retraces, size_t lines) {
  if (result.ranks && result.ranks->slow) return Cause::slow_rank;
  if (result.input_bound != InputBound::no) {
    if (result.slow_path) return Cause::slow_path;
    if (result.stages.empty()) return Cause::input;
    const auto busiest = std::max_element(result.stages.begin(), result.stages.begin() + 3,
                                          [](const StageLoad& a, const StageLoad& b) { return a.busy < b.busy; });
    result.limits = busiest->stage;
    return busiest->stage == Stage::reading    ? Cause::slow_storage
           : busiest->stage == Stage::decoding ? Cause::decoding
                                               : Cause::features;
  }
  if (retraces > 0 && retraces * 2 > static_cast<double>(lines)) return Cause::retraces;
  constexpr double well_used = 0.7;
  if (result.gpu_busy && *result.gpu_busy < well_used) return Cause::gpu_under_used;
  return result.oscillating ? Cause::uneven_consumer : Cause::none;
}

std::string verdict_of(const Diagnosis& result, double retraces) {
  const std::string waiting = fmt::format("it waited for data {:.1f} % of the time", 100 * result.input_wait_fraction);
  switch (result.cause) {
    case Cause::none:
      return fmt::format("Healthy: the run was {}, not input-bound ({}).",
                         result.steady_cv < stable_cv ? "stable" : "fed in time", waiting);
    case Cause::slow_path:
      return fmt::format("The slow path limited this run: {}.", waiting);
    case Cause::input:
      return fmt::format("Data loading limited this run: {}; `diagnose bottleneck` names the stage.", waiting);
    case Cause::retraces:
      return fmt::format("Retracing limited this run: {:.0f} retraces, each a stall.", retraces);
    case Cause::slow_rank:
      return result.ranks->sentence;
    case Cause::gpu_under_used:
      return fmt::format("The GPU was busy {:.0f} % of the time although {}: the step itself leaves gaps.",
                         100 * result.gpu_busy.value_or(0), waiting);
    case Cause::uneven_consumer:
      return fmt::format("The steps of this run were uneven: {:.0f} ms on average and up to {:.0f} ms, while {}.",
                         result.batch_ms.mean, result.batch_ms.max, waiting);
    default:
      return fmt::format("{} limited this run: workers spent {:.0f} % of their time on it, and {}.",
                         result.limits == Stage::reading    ? "Reading"
                         : result.limits == Stage::decoding ? "Decoding"
                                                            : "Computing features",
                         100 * std::max_element(result.stages.begin(), result.stages.begin() + 3,
                                                [](const StageLoad& a, const StageLoad& b) { return a.busy < b.busy; })
                                   ->busy,
                         waiting);
  }
}

void add_checks(Diagnosis& result, const Config& config) {
  const auto check = [&](const char* name, bool good, const char* advice) {
    result.checks.push_back(
        {name, good ? CheckState::ok : CheckState::attention, good ? "on" : "off", good ? "" : advice});
  };
  check("Native loading", config.data.use_native_loading, "set data.use_native_loading: true");
  check("Graph mode", config.training.enable_graph_mode && !config.training.enable_eager_debug,
        "set training.enable_graph_mode: true and training.enable_eager_debug: false");
  check("Static shapes", config.data.pad_to_fixed_length, "set data.pad_to_fixed_length: true");
  check("Automatic tuning", config.data.auto_tune_performance, "set data.auto_tune_performance: true");
}

}  // namespace

Diagnosis diagnose_run(const RunRecord& run, const std::optional<Config>& config) {
  const std::vector<double> step_ms = values_of(run, "step_ms"), wait_ms = values_of(run, "input_wait_ms");
  if (step_ms.empty() || wait_ms.size() != step_ms.size()) {
    reject_input("diagnose", "{} has no step times in its metrics.jsonl", run.name,
                 way_out("has it completed a step?"));
  }
  Diagnosis result;
  find_period(result, step_ms);
  result.input_wait_fraction = std::clamp(mean_of(wait_ms) / std::max(result.batch_ms.mean, 1e-9), 0.0, 1.0);
  result.input_bound = input_bound_of(result.input_wait_fraction);
  result.consumer_ms = result.batch_ms.mean - mean_of(wait_ms);
  result.headroom = result.consumer_ms > 0 ? std::optional(result.batch_ms.mean / result.consumer_ms) : std::nullopt;
  result.limits_by = result.headroom.value_or(1);
  result.slow_path = config && !config->data.use_native_loading;
  if (const std::vector<double> busy = values_of(run, "gpu_busy"); !busy.empty()) result.gpu_busy = mean_of(busy);
  load_stages(result, run);
  if (!run.ranks.empty()) result.ranks = find_slow_rank(run.ranks);
  const std::vector<double> retraces = values_of(run, "retraces");
  const double retraced = retraces.empty() ? 0 : retraces.back();
  result.cause = cause_of(result, retraced, step_ms.size());
  result.healthy = result.cause == Cause::none;
  result.verdict = verdict_of(result, retraced);
  result.findings = {variation_finding(result.steady_cv, result.period_batches, "lines"),
                     input_finding(result.input_wait_fraction), fmt::format("{:.0f} retraces", retraced)};
  if (result.ranks) result.findings.push_back(result.ranks->sentence);
  if (config) {
    result.findings.push_back(slow_path_finding(result.slow_path));
    add_checks(result, *config);
    if (result.cause == Cause::slow_path) {
      result.recommendations.push_back({"data.use_native_loading", "false", "true",
                                        "the slow path loads one clip at a time while the model waits",
                                        result.headroom});
    }
    if (result.cause == Cause::retraces && !config->data.pad_to_fixed_length) {
      result.recommendations.push_back({"data.pad_to_fixed_length", "false", "true",
                                        "with static shapes each shape is captured once", std::nullopt});
    }
  }
  return result;
}

}  // namespace myxtts
