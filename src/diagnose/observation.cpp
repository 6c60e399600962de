#include "diagnose/observation.h"

#include "base/clock.h"
#include "base/process.h"
#include "device/device.h"

#include <cstring>
#include <map>
#include <utility>

namespace myxtts {
namespace {

// A batch that stays when the ring goes on.
class KeptBatch {
 public:
  explicit KeptBatch(const Batch& batch) : host_(copy_to_host(batch)), batch_(*host_) {
    const int device = batch.arrays.front().device;
    if (device < 0) return;
    on_device_ = DeviceBuffer(device, packed_bytes(batch));
    on_device_.upload({host_->arrays.front().data, packed_bytes(batch)});
    place_arrays(batch_, static_cast<std::byte*>(on_device_.data()), device);
  }

  const Batch& batch() const { return batch_; }

 private:
  BatchLease host_;
  Batch batch_;
  DeviceBuffer on_device_;
};

// Tells whether one more batch, of the length of the last, ends in time.
class Deadline {
 public:
  explicit Deadline(double seconds) : seconds_(seconds) {}

  bool allows_one_more(double share = 1) {
    const double now_s = clock_.seconds(), last_s = now_s - std::exchange(before_s_, now_s);
    return now_s + last_s <= share * seconds_;
  }

 private:
  double seconds_, before_s_ = 0;
  Stopwatch clock_;
};

// What the observed batches would have taken with their data at hand: each by its shape. Shapes that were not kept
// count as they were.
std::optional<double> replay_ms(const std::vector<KeptBatch>& kept, const Consumer& consumer,
                                const std::vector<ObservedBatch>& batches, Deadline& deadline) {
  struct Sum {
    double ms = 0;
    int count = 0;
  };
  std::map<size_t, Sum> by_shape;
  constexpr size_t repeats = 2;
  for (size_t i = 0; i < repeats * kept.size() && deadline.allows_one_more(); ++i) {
    const KeptBatch& one = kept[i % kept.size()];
    const Stopwatch clock;
    consumer.consume(one.batch());
    Sum& sum = by_shape[one.batch().shape];
    sum.ms += clock.ms(), ++sum.count;
  }
  if (by_shape.empty()) return {};
  double total = 0;
  for (const ObservedBatch& batch : batches) {
    const auto found = by_shape.find(batch.shape);
    total += found == by_shape.end() ? batch.consume_ms() : found->second.ms / found->second.count;
  }
  return total / static_cast<double>(batches.size());
}

}  // namespace

Observation observe(std::unique_ptr<BatchSource> source, const Consumer& consumer, const ObserveOptions& options) {
  constexpr size_t most_kept = 8;
  std::vector<KeptBatch> kept;
  std::map<size_t, size_t> kept_of_shape;
  const auto keep = [&](const Batch& batch) {
    if (kept.size() < most_kept && ++kept_of_shape[batch.shape] <= 2) kept.emplace_back(batch);
  };
  Observation seen;
  seen.consumer = consumer.name;
  constexpr double warm_by = 0.2, observed_by = 0.85;  // shares of the time
  constexpr size_t fewest = 2;
  Deadline deadline(options.seconds);
  for (size_t i = 0; i < options.warm_up && (i == 0 || deadline.allows_one_more(warm_by)); ++i) {
    const BatchLease batch = source->next(consumer.stream);
    consumer.consume(*batch);
    keep(*batch);
  }
  if (consumer.take_busy_ms) consumer.take_busy_ms();
  seen.before = source->stats();
  const double cpu_before_s = cpu_seconds();
  const Stopwatch whole;
  for (size_t i = 0; i < options.batches && (deadline.allows_one_more(observed_by) || i < fewest); ++i) {
    ObservedBatch one;
    const LoaderStats before = source->stats();
    one.ready_batches = before.ready_batches;
    one.asked_ns = now_ns();
    const BatchLease batch = source->next(consumer.stream);
    one.taken_ns = now_ns();
    one.wait_ms = 1e3 * (source->stats().consumer_waits_s - before.consumer_waits_s);
    consumer.consume(*batch);
    one.done_ns = now_ns();
    one.shape = batch->shape, one.times = batch->times, one.audio_s = batch->seconds;
    one.frames = batch->padded_frames(), one.true_frames = batch->valid_frames();
    seen.batches.push_back(one);
    if (options.progress) options.progress(i + 1);
  }
  seen.wall_s = whole.seconds(), seen.cpu_s = cpu_seconds() - cpu_before_s;
  seen.after = source->stats();
  if (consumer.take_busy_ms) seen.gpu_busy = std::min(1.0, consumer.take_busy_ms() / (seen.wall_s * 1e3));
  source.reset();
  seen.free_ms = replay_ms(kept, consumer, seen.batches, deadline);
  return seen;
}

}  // namespace myxtts
