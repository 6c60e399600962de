#include "diagnose/recommend.h"

#include "base/counted.h"
#include "base/error.h"
#include "settings/config_file.h"
#include "settings/settings.h"

#include <algorithm>
#include <cmath>

namespace myxtts {
namespace {

double work_ms(const Diagnosis& found, Stage stage) {
  for (const StageLoad& load : found.stages) {
    if (load.stage == stage) return load.ms_per_batch.value_or(0);
  }
  return 0;
}

double rows_ms(const Diagnosis& found) {
  return work_ms(found, Stage::reading) + work_ms(found, Stage::decoding) + work_ms(found, Stage::features);
}

// Speed-up if the loader takes `loading_ms` per batch, concurrently with the consumer.
std::optional<double> gain_with(const Diagnosis& found, double loading_ms) {
  const double new_batch_ms = std::max({loading_ms, found.consumer_ms, 1e-3});
  const double gain = found.batch_ms.mean / new_batch_ms;
  return gain > 1 ? std::optional(gain) : std::nullopt;
}

std::string text(size_t number) { return fmt::format("{}", number); }

// Recommends one worker per idle core.
void more_workers(std::vector<Recommendation>& all, const Diagnosis& found, const PipelineSetup& setup,
                  std::string_view work) {
  const size_t spare = setup.model_on_gpu ? 3 : 0;
  const size_t proposed = setup.cores > spare ? setup.cores - spare : 1;
  if (setup.workers >= proposed) return;
  const double loading_ms = rows_ms(found) / static_cast<double>(proposed);
  all.push_back({"data.num_workers", setup.num_workers, text(proposed),
                 fmt::format("{} takes {:.0f} ms of work per batch with {} on {} cores", work, rows_ms(found),
                             setup.workers == 1 ? "1 worker" : fmt::format("{} workers", setup.workers), setup.cores),
                 gain_with(found, loading_ms)});
}

void slow_path(std::vector<Recommendation>& all, const Diagnosis& found, const PipelineSetup& setup) {
  const double loading_ms = rows_ms(found) / static_cast<double>(std::max<size_t>(1, setup.cores));
  all.push_back({"data.use_native_loading", "false", "true",
                 "the slow path loads one clip at a time while the consumer waits; the native loader works ahead, on "
                 "every core",
                 gain_with(found, loading_ms)});
}

void storage(std::vector<Recommendation>& all, const Diagnosis& found, const PipelineSetup& setup) {
  const double without_ms = (rows_ms(found) - work_ms(found, Stage::reading)) / static_cast<double>(setup.workers);
  all.push_back({"storage", fmt::format("{:.1f} MB/s", found.storage_mb_per_s),
                 found.consumer_ms > 0.01 ? fmt::format("{:.0f} MB/s or more", found.asked_mb_per_s) : "a faster disk",
                 "the storage of the corpus cannot keep up; move it to a local SSD or into memory",
                 gain_with(found, without_ms), false});
  if (!setup.separate_files) return;
  all.push_back({"corpus", "separate files", "packed by `myxtts prepare --pack`",
                 "shards are read sequentially, without opening or seeking for every clip", std::nullopt, false});
}

void decoding(std::vector<Recommendation>& all, const Diagnosis& found, const PipelineSetup& setup) {
  more_workers(all, found, setup, "decoding");
  if (setup.compressed_share < 0.05) return;
  const double without_ms = (rows_ms(found) - work_ms(found, Stage::decoding)) / static_cast<double>(setup.workers);
  all.push_back({"corpus", fmt::format("{:.0f} % of the clips are compressed", 100 * setup.compressed_share),
                 "WAV files", "a WAV file needs no decoding", gain_with(found, without_ms), false});
}

void features(std::vector<Recommendation>& all, const Diagnosis& found, const PipelineSetup& setup) {
  more_workers(all, found, setup, "the mel");
  if (!setup.model_on_gpu || setup.batches_on_gpu) return;
  all.push_back({"data.prefetch_to_gpu", "false", "true", "the GPU computes features far faster than the CPU",
                 gain_with(found, 0)});
}

// Of a foreign loader that tells how many workers it has; 0: the consumer's own thread.
void more_processes(std::vector<Recommendation>& all, const PipelineSetup& setup) {
  if (setup.stages_known || setup.num_workers == "auto" || setup.workers >= setup.cores) return;
  all.push_back({"num_workers", setup.num_workers, text(setup.cores),
                 fmt::format("the loader has {} on {} cores", counted(setup.workers, "worker"), setup.cores),
                 std::nullopt, false});
}

// Enlarges the ring to cover a stall, if the loader catches up in between.
void larger_ring(std::vector<Recommendation>& all, const Diagnosis& found, const PipelineSetup& setup,
                 double stall_ms) {
  if (found.consumer_ms <= 0 || found.loading_ms >= 0.8 * found.consumer_ms) return;
  const double hidden = static_cast<double>(setup.ring_batches);
  const auto proposed = static_cast<size_t>(std::ceil(1.5 * stall_ms / found.consumer_ms + hidden));
  all.push_back({"data.pipeline_buffer_size", text(setup.ring_batches), text(proposed),
                 fmt::format("a stall of {:.0f} ms is {:.0f} batches long; a ring that holds more hides it", stall_ms,
                             std::ceil(stall_ms / found.consumer_ms)),
                 gain_with(found, found.consumer_ms)});
}

}  // namespace

std::vector<Recommendation> recommend(const Diagnosis& found, const PipelineSetup& setup, double stall_ms) {
  std::vector<Recommendation> all;
  switch (found.cause) {
    case Cause::none:
    case Cause::uneven_consumer:
      return {};
    case Cause::slow_path:
      slow_path(all, found, setup);
      break;
    case Cause::slow_storage:
    case Cause::faster_than_storage:
      storage(all, found, setup);
      break;
    case Cause::decoding:
      decoding(all, found, setup);
      break;
    case Cause::features:
      features(all, found, setup);
      break;
    case Cause::copying:
      if (setup.model_on_gpu && !setup.batches_on_gpu) {
        all.push_back({"data.prefetch_to_gpu", "false", "true",
                       "batches are copied when they are taken; computed on the GPU they need no copy",
                       gain_with(found, 0)});
      }
      break;
    case Cause::too_few_batches_read:
      all.push_back({"data.prefetch_buffer_size", text(setup.reading_batches), text(2 * setup.reading_batches),
                     "workers are idle because no more batches may be read at a time",
                     gain_with(found, rows_ms(found) / static_cast<double>(setup.workers))});
      break;
    case Cause::stalls:
      larger_ring(all, found, setup, stall_ms);
      break;
    case Cause::input:
      more_processes(all, setup);
      break;
    case Cause::slow_rank:
    case Cause::gpu_under_used:
    case Cause::retraces:
      break;
  }
  if (setup.model_on_gpu && !setup.static_shapes) {
    all.push_back({"data.pad_to_fixed_length", "false", "true",
                   "with static shapes the step is captured once per shape and replayed", std::nullopt});
  }
  if (setup.model_on_gpu && (!setup.graph_mode || setup.eager_debug)) {
    const bool debug = setup.eager_debug;
    all.push_back({debug ? "training.enable_eager_debug" : "training.enable_graph_mode", debug ? "true" : "false",
                   debug ? "false" : "true", "a captured step is one launch instead of a thousand", std::nullopt});
  }
  return all;
}

std::string apply_recommendations(const Config& config, const std::vector<Recommendation>& recommendations) {
  ResolvedConfig changed{config, {}};
  for (const Recommendation& one : recommendations) {
    if (!one.applies) continue;
    const Setting* setting = find_setting(one.setting);
    if (setting == nullptr) fail("diagnose", "{} is not a setting", one.setting);
    set_value(changed, *setting, one.proposed, {Source::Kind::auto_tuned, "recommended"});
  }
  return config_to_yaml(changed.values);
}

}  // namespace myxtts
