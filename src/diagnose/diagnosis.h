// What limits a run, said in one sentence and founded on numbers. Pure functions: nothing here measures, waits or
// prints. A stage that others wait for is the one that limits.
//
//   observation + setup ─► diagnose() ─► text, JSON, page
#pragma once

#include "diagnose/oscillation.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace myxtts {

struct Observation;

// The settings and the machine, as far as the verdict depends on them.
struct PipelineSetup {
  bool native = true;
  bool model_on_gpu = false;
  bool batches_on_gpu = false;  // features are made there
  bool graph_mode = true, eager_debug = false, static_shapes = true;
  bool tuned = true;                 // data.auto_tune_performance
  std::string num_workers = "auto";  // as it is set
  size_t workers = 1, cores = 1;
  size_t ring_batches = 50, reading_batches = 8;
  double compressed_share = 0;  // of the clips: not WAV
  bool separate_files = true;   // not in shards
};

enum class Stage { reading, decoding, features, copying, consumer };
std::string_view name_of(Stage stage);

struct StageLoad {
  Stage stage;
  double busy = 0;  // share of the time of those who do it: workers, the device's thread, the consumer
  std::optional<double> ms_per_batch = {};  // their time together; nothing where it was not recorded
};

// Why the consumer waits.
enum class Cause {
  none,
  slow_path,
  slow_storage,         // it gives less than any sound disk
  faster_than_storage,  // a sound disk, and a consumer that asks for more
  decoding,
  features,
  copying,
  too_few_batches_read,  // workers rest although the consumer waits
  stalls,                // now and then everything stands still
  uneven_consumer,       // it does not wait, but its own time swings
  gpu_under_used,        // of a finished run: little waiting, and a GPU that rests all the same
  retraces,              // of a finished run: the step is captured again and again
  input,                 // of a finished run that did not record its loader's stages
};
std::string_view name_of(Cause cause);

enum class InputBound { no, moderately, highly };  // at 5 and 20 % of the time

struct Recommendation {
  std::string setting;  // "data.num_workers", or what no setting changes: "storage"
  std::string current, proposed;
  std::string reason;
  std::optional<double> gain;  // at most so many times as fast; nothing where the numbers do not tell
  bool applies = true;         // it is a setting that can be written into a config
};

enum class CheckState { ok, attention, unknown };
std::string_view name_of(CheckState state);

struct Check {
  std::string name;
  CheckState state = CheckState::unknown;
  std::string value;
  std::string advice;  // where it needs attention
};

struct Diagnosis {
  bool healthy = true;
  Cause cause = Cause::none;
  std::string verdict;                // one sentence
  std::vector<std::string> findings;  // the old tools' outcomes, a line each
  Spread batch_ms;                    // from batch to batch
  double steady_variation = 0;        // std/mean once the shapes' own differences are taken out
  bool oscillating = false;
  std::optional<double> period_batches;
  std::string period_seen_in;  // "batch times", or "the loader's pace, hidden from the consumer by the ring"
  double input_wait_fraction = 0;
  InputBound input_bound = InputBound::no;
  double consumer_ms = 0, loading_ms = 0;  // a batch
  bool slow_path = false;
  std::vector<StageLoad> stages;
  Stage limits = Stage::consumer;
  double limits_by = 1;            // how many times longer a batch takes than it would take the consumer alone
  std::optional<double> headroom;  // how many times faster it would be if data were free
  std::optional<double> gpu_busy;
  double storage_mb_per_s = 0, asked_mb_per_s = 0;  // while it is read; what the consumer could take
  std::vector<Recommendation> recommendations;
  std::vector<Check> checks;
};

// Without the check-list, which is about the machine. At least one batch was observed.
Diagnosis diagnose(const Observation& seen, const PipelineSetup& setup);

InputBound input_bound_of(double wait_fraction);

// "High variation detected ...", "Highly input-bound ...", "Data loading slow ...", "Slow path found ...".
std::string variation_finding(double variation, std::optional<double> period, std::string_view unit);
std::string input_finding(double wait_fraction);
std::string loading_finding(double loading_ms);
std::string slow_path_finding(bool slow_path);

constexpr double cyclic_variation = 0.5, stable_variation = 0.2;

}  // namespace myxtts
