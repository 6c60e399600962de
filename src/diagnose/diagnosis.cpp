#include "diagnose/diagnosis.h"

#include "diagnose/observation.h"
#include "diagnose/recommend.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

namespace myxtts {
namespace {

constexpr double healthy_disk_mb_per_s = 20;  // a hard disk that seeks for every clip reaches about this

double mean_of(const Observation& observation, double (*metric)(const ObservedBatch&)) {
  double sum = 0;
  for (const ObservedBatch& batch : observation.batches) sum += metric(batch);
  return sum / static_cast<double>(observation.batches.size());
}

std::vector<double> series_of(const Observation& observation, double (*metric)(const ObservedBatch&)) {
  std::vector<double> values;
  for (const ObservedBatch& batch : observation.batches) values.push_back(metric(batch));
  return values;
}

double median_of(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Subtracts the median of each shape and adds the overall mean, because longer shapes legitimately take longer.
std::vector<double> remove_shape_effect(const Observation& observation, const std::vector<double>& values) {
  std::map<size_t, std::vector<double>> by_shape;
  for (size_t i = 0; i < values.size(); ++i) by_shape[observation.batches[i].shape].push_back(values[i]);
  std::map<size_t, double> median;
  for (const auto& [shape, of_shape] : by_shape) median[shape] = median_of(of_shape);
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  std::vector<double> residual(values.size());
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) sum += residual[i] = values[i] - median[observation.batches[i].shape];
  for (double& value : residual) value += mean - sum / static_cast<double>(residual.size());
  return residual;
}

// Requires three periods, because two slow batches may be a coincidence.
std::optional<double> clear_period(const std::vector<double>& values) {
  const std::optional<double> period = period_of(values);
  return period && *period * 3 <= static_cast<double>(values.size()) && *period >= 2 ? period : std::nullopt;
}

// Intervals between batches that the loader finished, in ms.
std::vector<double> pace_of(const Observation& observation) {
  std::vector<double> pace;
  for (size_t i = 1; i < observation.batches.size(); ++i) {
    pace.push_back(
        static_cast<double>(observation.batches[i].times.finished_ns - observation.batches[i - 1].times.finished_ns) *
        1e-6);
  }
  return pace;
}

// Waiting time plus the cost of batches drained from the ring, because a draining ring hides a slow loader for a while.
// A loader that waited for room is fast enough.
double wait_fraction(const Observation& observation) {
  double wait_s = 0;
  for (const ObservedBatch& batch : observation.batches) wait_s += batch.wait_ms * 1e-3;
  double wall_s = std::max(observation.wall_s, 1e-9);
  const double taken = static_cast<double>(observation.batches.size());
  const double drained =
      static_cast<double>(observation.before.ready_batches) - static_cast<double>(observation.after.ready_batches);
  const double room_s = observation.after.plan_waits_for_room_s - observation.before.plan_waits_for_room_s;
  if (drained > 0 && drained < taken && room_s < 0.05 * wall_s) {
    const double deferred_s = drained * wall_s / (taken - drained);
    wait_s += deferred_s, wall_s += deferred_s;
  }
  return std::clamp(wait_s / wall_s, 0.0, 1.0);
}

// Batches that took far longer than the median. They are the cause if they contain most of the waiting.
struct Stalls {
  size_t count = 0;
  double mean_ms = 0;            // wait per stall
  double share = 0;              // share of all waiting
  Stage stage = Stage::reading;  // the slow stage
};

Stalls stalls_of(const Observation& observation) {
  const double median_ms =
      median_of(series_of(observation, [](const ObservedBatch& batch) { return batch.batch_ms(); }));
  Stalls stalls;
  double all_ms = 0, in_stalls_ms = 0;
  for (const ObservedBatch& batch : observation.batches) {
    all_ms += batch.wait_ms;
    if (batch.wait_ms < 1.5 * median_ms) continue;
    ++stalls.count, in_stalls_ms += batch.wait_ms;
  }
  if (stalls.count == 0) return stalls;
  stalls.mean_ms = in_stalls_ms / static_cast<double>(stalls.count), stalls.share = in_stalls_ms / all_ms;
  // The stage with the largest excess over three times its median.
  double max_excess = 0;
  const auto compare = [&](Stage stage, double (*metric)(const ObservedBatch&)) {
    const std::vector<double> values = series_of(observation, metric);
    const double median = median_of(values);
    double excess = 0;
    for (const double value : values) excess += std::max(0.0, value - 3 * median);
    if (excess > max_excess) max_excess = excess, stalls.stage = stage;
  };
  compare(Stage::reading, [](const ObservedBatch& batch) { return batch.times.read_s; });
  compare(Stage::decoding, [](const ObservedBatch& batch) { return batch.times.decode_s; });
  compare(Stage::features, [](const ObservedBatch& batch) { return batch.times.features_s; });
  return stalls;
}

// Of a foreign loader: how long it was waited for.
void load_unknown_stages(Diagnosis& result, const Observation& observation) {
  result.loading_ms = mean_of(observation, [](const ObservedBatch& batch) { return batch.wait_ms; });
  const double share = result.consumer_ms / std::max(result.batch_ms.mean, 1e-6);
  result.stages = {{Stage::loading, result.input_wait_fraction, result.loading_ms},
                   {Stage::consumer, std::min(1.0, share), result.consumer_ms}};
}

void load_stages(Diagnosis& result, const Observation& observation, const PipelineSetup& setup) {
  if (!setup.stages_known) {
    load_unknown_stages(result, observation);
    return;
  }
  const double read_ms = 1e3 * mean_of(observation, [](const ObservedBatch& batch) { return batch.times.read_s; });
  const double decode_ms = 1e3 * mean_of(observation, [](const ObservedBatch& batch) { return batch.times.decode_s; });
  const double features_ms =
      1e3 * mean_of(observation, [](const ObservedBatch& batch) { return batch.times.features_s; });
  const double copy_ms = 1e3 * mean_of(observation, [](const ObservedBatch& batch) {
                           return static_cast<double>(batch.times.finished_ns -
                                                      std::min(batch.times.finished_ns, batch.times.rows_done_ns)) *
                                  1e-9;
                         });
  const double wall_s = std::max(observation.wall_s, 1e-9);
  const double workers = static_cast<double>(setup.native ? std::max<size_t>(1, setup.workers) : 1);
  const double batches_per_s = static_cast<double>(observation.batches.size()) / wall_s;
  const auto of_workers = [&](double ms) { return std::min(1.0, ms * 1e-3 * batches_per_s / workers); };
  const double handing_s = observation.after.finish_busy_s - observation.before.finish_busy_s;
  const double handing_ms = setup.native ? 1e3 * handing_s / static_cast<double>(observation.batches.size()) : copy_ms;
  result.stages = {{Stage::reading, of_workers(read_ms), read_ms},
                   {Stage::decoding, of_workers(decode_ms), decode_ms},
                   {Stage::features, of_workers(features_ms), features_ms},
                   {Stage::copying, std::min(1.0, handing_ms * 1e-3 * batches_per_s), handing_ms},
                   {Stage::consumer, std::min(1.0, result.consumer_ms * 1e-3 * batches_per_s), result.consumer_ms}};
  const double rows_ms = (read_ms + decode_ms + features_ms) / workers;
  result.loading_ms = setup.native ? std::max(rows_ms, handing_ms) : rows_ms;
  double bytes = 0, read_s = 0;
  for (const ObservedBatch& batch : observation.batches) {
    bytes += static_cast<double>(batch.times.bytes_read), read_s += batch.times.read_s;
  }
  if (read_s > 0) result.storage_mb_per_s = bytes * 1e-6 / (read_s / workers);
  const double batch_mb = bytes * 1e-6 / static_cast<double>(observation.batches.size());
  result.asked_mb_per_s = result.consumer_ms > 0 ? batch_mb / (result.consumer_ms * 1e-3) : 0;
}

const StageLoad& load_of(const Diagnosis& result, Stage stage) {
  return *std::find_if(result.stages.begin(), result.stages.end(),
                       [&](const StageLoad& load) { return load.stage == stage; });
}

Cause cause_of(Diagnosis& result, const Observation& observation, const PipelineSetup& setup, const Stalls& stalls) {
  if (result.input_bound == InputBound::no) {
    result.limits = Stage::consumer;
    return result.oscillating ? Cause::uneven_consumer : Cause::none;
  }
  // A period is evidence by itself, so a smaller share is enough.
  constexpr double stall_share = 0.7, periodic_stall_share = 0.5;
  const bool periodic = result.oscillating && result.period_batches.has_value();
  const bool stalls_prevail = stalls.count >= 2 && stalls.share > (periodic ? periodic_stall_share : stall_share);
  if (!setup.stages_known) {
    result.limits = Stage::loading;
    return stalls_prevail ? Cause::stalls : Cause::input;
  }
  const StageLoad* busiest = &result.stages[0];
  for (const Stage stage : {Stage::decoding, Stage::features}) {
    if (load_of(result, stage).ms_per_batch > busiest->ms_per_batch) busiest = &load_of(result, stage);
  }
  result.limits = busiest->stage;
  if (!setup.native) return Cause::slow_path;
  if (stalls_prevail && result.loading_ms < result.batch_ms.mean * stall_share) {
    result.limits = stalls.stage;
    return Cause::stalls;
  }
  const double wall_s = std::max(observation.wall_s, 1e-9);
  const double workers_busy = (observation.after.rows_busy_s - observation.before.rows_busy_s) /
                              (wall_s * static_cast<double>(std::max<size_t>(1, setup.workers)));
  const double copying = load_of(result, Stage::copying).busy;
  const double beginning = (observation.after.begin_busy_s - observation.before.begin_busy_s) / wall_s;
  if (std::max(copying, beginning) > 0.5 && std::max(copying, beginning) > workers_busy) {
    result.limits = Stage::copying;
    return Cause::copying;
  }
  const double gate =
      (observation.after.plan_waits_for_reading_s - observation.before.plan_waits_for_reading_s) / wall_s;
  if (workers_busy < 0.6 && gate > 0.3) return Cause::too_few_batches_read;
  if (result.limits == Stage::decoding) return Cause::decoding;
  if (result.limits == Stage::features) return Cause::features;
  return result.storage_mb_per_s < healthy_disk_mb_per_s ? Cause::slow_storage : Cause::faster_than_storage;
}

std::string in_ms(double ms) { return ms < 10 ? fmt::format("{:.1f} ms", ms) : fmt::format("{:.0f} ms", ms); }

std::string waiting(const Diagnosis& result) {
  return fmt::format("the consumer waits for data {:.0f} % of the time", 100 * result.input_wait_fraction);
}

std::string verdict_of(const Diagnosis& result, const PipelineSetup& setup, const Stalls& stalls) {
  const std::string workers = setup.workers == 1 ? "1 worker" : fmt::format("{} workers", setup.workers);
  const auto stage_ms = [&](Stage stage) { return in_ms(load_of(result, stage).ms_per_batch.value_or(0)); };
  switch (result.cause) {
    case Cause::none:
      return fmt::format(
          "Healthy: {}, not input-bound ({:.1f} % of the time is waiting for data); the consumer sets the pace at {} "
          "per batch.",
          result.steady_cv < stable_cv ? "the pipeline is stable" : "the pipeline keeps up",
          100 * result.input_wait_fraction, in_ms(result.batch_ms.mean));
    case Cause::uneven_consumer:
      return fmt::format(
          "The consumer itself is uneven: its batches take {} on average and up to {}, while data are always ready.",
          in_ms(result.batch_ms.mean), in_ms(result.batch_ms.max));
    case Cause::slow_path:
      return fmt::format(
          "The slow path limits: clips are loaded one at a time in the consumer's own thread, {} per batch, and {}.",
          in_ms(result.loading_ms), waiting(result));
    case Cause::slow_storage:
      return fmt::format(
          "Reading limits: the storage is slow ({:.1f} MB/s, the consumer needs {:.1f} MB/s), and "
          "{}.",
          result.storage_mb_per_s, result.asked_mb_per_s, waiting(result));
    case Cause::faster_than_storage:
      return fmt::format(
          "Reading limits: the consumer is faster than the disk ({:.0f} MB/s, the consumer needs {}), and "
          "{}.",
          result.storage_mb_per_s,
          result.consumer_ms > 0.01 ? fmt::format("{:.0f} MB/s", result.asked_mb_per_s) : "any amount",
          waiting(result));
    case Cause::decoding:
      return fmt::format("Decoding limits: {} of work per batch for {}{}, and {}.", stage_ms(Stage::decoding), workers,
                         setup.workers < setup.cores ? fmt::format(" on a machine with {} cores", setup.cores) : "",
                         waiting(result));
    case Cause::features:
      return fmt::format(
          "Features limit: {} of mel work per batch for {}{}, and {}.", stage_ms(Stage::features), workers,
          setup.workers < setup.cores ? fmt::format(" on a machine with {} cores", setup.cores) : "", waiting(result));
    case Cause::copying:
      return fmt::format("Copying limits: handing a batch to the device takes {}, and {}.", stage_ms(Stage::copying),
                         waiting(result));
    case Cause::too_few_batches_read:
      return fmt::format("Too few batches are read at a time ({}): workers are idle while {}.", setup.reading_batches,
                         waiting(result));
    case Cause::stalls:
      return fmt::format(
          "{} stalls for {}{}: in between it keeps up, and {}.",
          !setup.stages_known               ? "The loader"
          : stalls.stage == Stage::reading  ? "Reading"
          : stalls.stage == Stage::decoding ? "Decoding"
                                            : "Computing features",
          in_ms(stalls.mean_ms),
          result.period_batches ? fmt::format(" every {:.0f} batches", *result.period_batches) : " occasionally",
          waiting(result));
    case Cause::input:
      return fmt::format("Data loading limits: {}, {} per batch.", waiting(result), in_ms(result.loading_ms));
    case Cause::slow_rank:
    case Cause::gpu_under_used:
    case Cause::retraces:
      break;  // finished runs only: see run_diagnosis.h
  }
  return "";
}

void find_period(Diagnosis& result, const Observation& observation) {
  const std::vector<double> batch_ms =
      series_of(observation, [](const ObservedBatch& batch) { return batch.batch_ms(); });
  result.batch_ms = summarize(batch_ms);
  const std::vector<double> steady = remove_shape_effect(observation, batch_ms);
  result.steady_cv = summarize(steady).cv;
  result.oscillating = result.steady_cv > cyclic_cv;
  if (result.oscillating) {
    result.period_batches = clear_period(steady);
    result.period_seen_in = result.period_batches ? "batch times" : "";
  }
  if (result.period_batches) return;
  const std::vector<double> pace = pace_of(observation);
  const SummaryStats stats = summarize(pace);
  if (pace.empty() || stats.cv <= cyclic_cv || stats.max < 5 * stats.p50) return;
  result.period_batches = clear_period(pace);
  if (result.period_batches) {
    result.period_seen_in = "the loader's pace, which the ring hides from the consumer";
  }
}

}  // namespace

std::string_view name_of(Stage stage) {
  switch (stage) {
    case Stage::reading:
      return "reading";
    case Stage::decoding:
      return "decoding";
    case Stage::features:
      return "features";
    case Stage::copying:
      return "copying";
    case Stage::consumer:
      return "consumer";
    case Stage::loading:
      return "loading";
  }
  return "";
}

std::string_view name_of(Cause cause) {
  switch (cause) {
    case Cause::none:
      return "none";
    case Cause::slow_path:
      return "slow path";
    case Cause::slow_storage:
      return "slow storage";
    case Cause::faster_than_storage:
      return "consumer faster than the disk";
    case Cause::decoding:
      return "decoding";
    case Cause::features:
      return "features";
    case Cause::copying:
      return "copying";
    case Cause::too_few_batches_read:
      return "too few batches read at a time";
    case Cause::stalls:
      return "periodic stalls";
    case Cause::uneven_consumer:
      return "uneven consumer";
    case Cause::slow_rank:
      return "slow rank";
    case Cause::gpu_under_used:
      return "GPU under-used";
    case Cause::retraces:
      return "retraces";
    case Cause::input:
      return "data loading";
  }
  return "";
}

std::string_view name_of(CheckState state) {
  return state == CheckState::ok ? "ok" : state == CheckState::attention ? "attention" : "unknown";
}

InputBound input_bound_of(double wait_fraction) {
  return wait_fraction < 0.05 ? InputBound::no : wait_fraction < 0.2 ? InputBound::moderately : InputBound::highly;
}

std::string variation_finding(double cv, std::optional<double> period, std::string_view unit) {
  if (cv > cyclic_cv) {
    return fmt::format("High variation detected (std/mean {:.2f}){}", cv,
                       period ? fmt::format(". Cyclic pattern identified: a slow one every {:.1f} {}", *period, unit)
                              : ", without a period");
  }
  return cv < stable_cv ? fmt::format("Low variation: pipeline stable (std/mean {:.2f})", cv)
                        : fmt::format("Moderate variation (std/mean {:.2f})", cv);
}

std::string input_finding(double wait_fraction) {
  const InputBound bound = input_bound_of(wait_fraction);
  return fmt::format("{} input-bound: {:.1f} % of the time is waiting for data",
                     bound == InputBound::no           ? "Not"
                     : bound == InputBound::moderately ? "Moderately"
                                                       : "Highly",
                     100 * wait_fraction);
}

std::string loading_finding(double loading_ms) {
  constexpr double slow_ms = 200, fast_ms = 100;
  return fmt::format("Data loading {}: {} per batch",
                     loading_ms > slow_ms   ? "slow"
                     : loading_ms > fast_ms ? "moderate"
                                            : "fast",
                     in_ms(loading_ms));
}

std::string slow_path_finding(bool slow_path) {
  return slow_path ? "Slow path found: data.use_native_loading is false" : "Slow path not found";
}

Diagnosis diagnose(const Observation& observation, const PipelineSetup& setup) {
  Diagnosis result;
  result.slow_path = !setup.native;
  result.gpu_busy = observation.gpu_busy;
  find_period(result, observation);
  result.consumer_ms = mean_of(observation, [](const ObservedBatch& batch) { return batch.consume_ms(); });
  result.input_wait_fraction = wait_fraction(observation);
  result.input_bound = input_bound_of(result.input_wait_fraction);
  load_stages(result, observation, setup);
  const Stalls stalls = stalls_of(observation);
  result.cause = cause_of(result, observation, setup, stalls);
  result.healthy = result.cause == Cause::none;
  result.limits_by = 1 / std::max(1e-3, 1 - result.input_wait_fraction);
  constexpr double nothing_ms = 0.01;  // no headroom for a consumer that takes no time
  if (observation.free_ms && *observation.free_ms > nothing_ms)
    result.headroom = std::max(1.0, result.batch_ms.mean / *observation.free_ms);
  result.verdict = verdict_of(result, setup, stalls);
  result.findings = {
      variation_finding(result.steady_cv, result.period_seen_in == "batch times" ? result.period_batches : std::nullopt,
                        "batches"),
      input_finding(result.input_wait_fraction)};
  if (setup.stages_known) {
    result.findings.push_back(loading_finding(result.loading_ms));
    result.findings.push_back(slow_path_finding(result.slow_path));
  }
  if (result.period_batches && result.period_seen_in != "batch times") {
    result.findings.push_back(fmt::format("The loader stalls every {:.1f} batches, seen in {}", *result.period_batches,
                                          result.period_seen_in));
  }
  result.recommendations = recommend(result, setup, stalls.mean_ms);
  return result;
}

}  // namespace myxtts
