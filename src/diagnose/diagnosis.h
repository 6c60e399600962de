// Finds what limits a run and states it in one sentence with numbers. Pure functions: they do not measure, wait or
// print. The limiting stage is the one that the others wait for.
//
//   observation + setup ─► diagnose() ─► text, JSON, page
#pragma once

#include "artifacts/run_report.h"
#include "diagnose/oscillation.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace myxtts {

struct Observation;

// Settings and machine properties that the verdict depends on.
struct PipelineSetup {
  bool native = true;
  bool model_on_gpu = false;
  bool batches_on_gpu = false;  // features are computed there
  bool graph_mode = true, eager_debug = false, static_shapes = true;
  bool tuned = true;                 // data.auto_tune_performance
  std::string num_workers = "auto";  // as configured
  size_t workers = 1, cores = 1;
  size_t ring_batches = 50, reading_batches = 8;
  double compressed_share = 0;  // share of clips that are not WAV
  bool separate_files = true;   // not packed in shards
  bool stages_known = true;     // false: a foreign loader, of which only the waiting is known
};

// `loading`: all before the consumer, of a foreign loader.
enum class Stage { reading, decoding, features, copying, consumer, loading };
std::string_view name_of(Stage stage);

struct StageLoad {
  Stage stage;
  double busy = 0;                          // utilisation of whoever runs the stage: workers, device thread or consumer
  std::optional<double> ms_per_batch = {};  // summed over workers; empty if not measured
};

// Root cause of the waiting.
enum class Cause {
  none,
  slow_path,
  slow_storage,         // throughput below that of any healthy disk
  faster_than_storage,  // a healthy disk, but the consumer needs more
  decoding,
  features,
  copying,
  too_few_batches_read,  // workers idle although the consumer waits
  stalls,                // the loader stops occasionally
  uneven_consumer,       // no waiting, but its own time varies
  gpu_under_used,        // finished run: little waiting, but an idle GPU
  slow_rank,             // finished run: one rank takes longer than the others, which wait for it
  retraces,              // finished run: the step is captured repeatedly
  input,                 // a foreign loader, or a finished run without loader stage metrics
};
std::string_view name_of(Cause cause);

enum class InputBound { no, moderately, highly };  // at 5 and 20 % of the time

struct Recommendation {
  std::string setting;  // "data.num_workers", or something outside the config: "storage"
  std::string current, proposed;
  std::string reason;
  std::optional<double> gain;  // upper bound of the speed-up; empty if unknown
  bool applies = true;         // a setting that can be written into a config
};

enum class CheckState { ok, attention, unknown };
std::string_view name_of(CheckState state);

struct Check {
  std::string name;
  CheckState state = CheckState::unknown;
  std::string value;
  std::string advice;  // if the state is attention
};

struct Diagnosis {
  bool healthy = true;
  Cause cause = Cause::none;
  std::string verdict;                // one sentence
  std::vector<std::string> findings;  // one line each
  SummaryStats batch_ms;              // time per batch
  double steady_cv = 0;               // cv after removing the differences between shapes
  bool oscillating = false;
  std::optional<double> period_batches;
  std::string period_seen_in;  // "batch times", or "the loader's pace, hidden from the consumer by the ring"
  double input_wait_fraction = 0;
  InputBound input_bound = InputBound::no;
  double consumer_ms = 0, loading_ms = 0;  // per batch
  bool slow_path = false;
  std::vector<StageLoad> stages;
  Stage limits = Stage::consumer;
  double limits_by = 1;            // batch time relative to the consumer alone
  std::optional<double> headroom;  // speed-up if data loading cost nothing
  std::optional<double> gpu_busy;
  std::optional<SlowRank> ranks;                    // empty: one process
  double storage_mb_per_s = 0, asked_mb_per_s = 0;  // measured while reading; demand of the consumer
  std::vector<Recommendation> recommendations;
  std::vector<Check> checks;
};

// Does not fill `checks`. Needs at least one observed batch.
Diagnosis diagnose(const Observation& observation, const PipelineSetup& setup);

InputBound input_bound_of(double wait_fraction);

// "High variation detected ...", "Highly input-bound ...", "Data loading slow ...", "Slow path found ...".
std::string variation_finding(double cv, std::optional<double> period, std::string_view unit);
std::string input_finding(double wait_fraction);
std::string loading_finding(double loading_ms);
std::string slow_path_finding(bool slow_path);

constexpr double cyclic_cv = 0.5, stable_cv = 0.2;

}  // namespace myxtts
