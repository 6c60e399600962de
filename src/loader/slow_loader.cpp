#include "loader/slow_loader.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/work_clock.h"
#include "loader/make_batch.h"

namespace myxtts {

SlowLoader::SlowLoader(const Corpus& corpus, const BatchPlan& plan, const LoaderOptions& options)
    : plan_(plan),
      options_(options),
      builder_(corpus, plan, options.arrays, options.world_size, options.rank),
      epoch_(options.epoch),
      index_(options.index) {
  if (options.device >= 0) {
    reject_input("loader", "the slow path makes batches on the CPU",
                 way_out("set data.use_native_loading: true for a GPU"));
  }
  if (plan.batches_per_epoch() == 0) reject_input("loader", "the corpus has too few clips for a batch");
}

BatchLease SlowLoader::next(StreamHandle) {
  const int64_t start_ns = now_ns();
  const WorkClock before = WorkClock::of_this_thread();
  if (index_ >= plan_.batches_per_epoch()) index_ = 0, ++epoch_;
  const BatchLease made =
      make_batch(builder_, plan_.batch(epoch_, index_++, options_.rank, options_.world_size), /*threads=*/1);
  const auto batch = std::make_shared<Batch>(*made);  // its arrays stay in what was made
  BatchTimes& times = batch->times;
  times.planned_ns = times.reading_ns = start_ns, times.rows_done_ns = times.finished_ns = now_ns();
  const double took_s = static_cast<double>(times.finished_ns - start_ns) * 1e-9;
  times.read_s = static_cast<double>(WorkClock::of_this_thread().reading_ns - before.reading_ns) * 1e-9;
  times.features_s = static_cast<double>(WorkClock::of_this_thread().features_ns - before.features_ns) * 1e-9;
  times.decode_s = took_s - times.read_s - times.features_s;
  ++stats_.batches;
  stats_.seconds_of_audio += batch->seconds, stats_.bytes_read += times.bytes_read;
  stats_.read_s += times.read_s, stats_.features_s += times.features_s;
  stats_.consumer_waits_s += took_s, stats_.rows_busy_s += took_s;
  stats_.active_workers = 1;
  return {batch.get(), [made, batch](const Batch*) {}};
}

}  // namespace myxtts
