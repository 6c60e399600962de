#include "loader/slow_loader.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/work_clock.h"

namespace myxtts {

SlowLoader::SlowLoader(const Corpus& corpus, const BatchPlan& plan, const LoaderOptions& options)
    : corpus_(corpus), plan_(plan), options_(options), epoch_(options.epoch), index_(options.index) {
  if (options.device >= 0) {
    reject_input("loader", "the slow path makes batches on the CPU; set data.use_native_loading: true for a GPU");
  }
  if (plan.batches_per_epoch() == 0) reject_input("loader", "the corpus has too few clips for a batch");
}

const LoadedBatch& SlowLoader::next(StreamHandle) {
  const int64_t start_ns = now_ns();
  const WorkClock before = WorkClock::of_this_thread();
  if (index_ >= plan_.batches_per_epoch()) index_ = 0, ++epoch_;
  const PlannedBatch planned = plan_.batch(epoch_, index_, options_.rank, options_.world_size);
  batch_ = make_batch(corpus_, plan_, planned, 1);
  loaded_ = {};
  loaded_.epoch = epoch_, loaded_.index = index_++, loaded_.shape = planned.shape;
  loaded_.rows = batch_.rows, loaded_.text_length = batch_.text_length, loaded_.mel_frames = batch_.mel_frames;
  loaded_.n_mels = batch_.n_mels;
  loaded_.tokens = batch_.tokens.data(), loaded_.text_lengths = batch_.text_lengths.data();
  loaded_.mel_lengths = batch_.mel_lengths.data(), loaded_.mel = batch_.mel.data();
  const uint64_t bytes_before = stats_.bytes_read;
  loaded_.clips = batch_.clips, loaded_.replaced = batch_.replaced;
  for (const uint32_t clip : batch_.clips) {
    if (clip == no_clip) continue;
    const CorpusClip one = corpus_.index.clip(clip);
    loaded_.seconds += one.seconds(), stats_.bytes_read += one.place.bytes;
  }
  ++stats_.batches;
  stats_.seconds_of_audio += loaded_.seconds;
  BatchTimes& times = loaded_.times;
  times.planned_ns = times.reading_ns = start_ns, times.rows_done_ns = times.finished_ns = now_ns();
  const double took_s = static_cast<double>(times.finished_ns - start_ns) * 1e-9;
  times.read_s = static_cast<double>(WorkClock::of_this_thread().reading_ns - before.reading_ns) * 1e-9;
  times.features_s = static_cast<double>(WorkClock::of_this_thread().features_ns - before.features_ns) * 1e-9;
  times.decode_s = took_s - times.read_s - times.features_s;
  times.bytes_read = stats_.bytes_read - bytes_before;
  stats_.read_s += times.read_s, stats_.features_s += times.features_s;
  stats_.consumer_waits_s += took_s, stats_.rows_busy_s += took_s;
  stats_.active_workers = 1;
  return loaded_;
}

}  // namespace myxtts
