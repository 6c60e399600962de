#include "diagnose/observer.h"

#include "base/process.h"

namespace myxtts {

void Observer::begin() {
  seen_.batches.clear();
  seen_.before = stats();
  cpu_before_s_ = cpu_seconds();
  whole_.restart();
}

void Observer::ask() {
  const LoaderStats before = stats();
  now_ = {};
  now_.ready_batches = before.ready_batches;
  waited_before_s_ = before.consumer_waits_s;
  now_.asked_ns = now_ns();
}

void Observer::take(const Batch* batch) {
  now_.taken_ns = now_ns();
  now_.wait_ms = stats_ ? 1e3 * (stats().consumer_waits_s - waited_before_s_)
                        : static_cast<double>(now_.taken_ns - now_.asked_ns) * 1e-6;
  if (batch == nullptr) return;
  now_.shape = batch->shape, now_.times = batch->times, now_.audio_s = batch->seconds;
  now_.frames = batch->padded_frames(), now_.true_frames = batch->valid_frames();
}

void Observer::done() {
  now_.done_ns = now_ns();
  seen_.batches.push_back(now_);
}

void Observer::end() {
  seen_.wall_s = whole_.seconds(), seen_.cpu_s = cpu_seconds() - cpu_before_s_;
  seen_.after = stats();
  stats_ = {};
}

void Observer::replayed(size_t shape, double ms) {
  Sum& sum = replayed_[shape];
  sum.ms += ms, ++sum.count;
}

// A shape of which nothing was replayed counts as it was measured.
Observation Observer::finish() {
  if (!replayed_.empty()) {
    double total_ms = 0;
    for (const ObservedBatch& batch : seen_.batches) {
      const auto found = replayed_.find(batch.shape);
      total_ms += found == replayed_.end() ? batch.consume_ms() : found->second.ms / found->second.count;
    }
    seen_.free_ms = total_ms / static_cast<double>(seen_.batches.size());
  }
  return std::move(seen_);
}

}  // namespace myxtts
