#include "diagnose/observation.h"

#include "base/clock.h"
#include "base/process.h"
#include "device/device.h"

#include <cstring>
#include <map>
#include <utility>

namespace myxtts {
namespace {

// A copy of a batch that outlives its place in the ring.
class CachedBatch {
 public:
  explicit CachedBatch(const Batch& batch) : host_(copy_to_host(batch)), batch_(*host_) {
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

// Decides whether one more batch as long as the last fits the time limit.
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

// Time per batch with cached data, by shape. Shapes without a cached batch cache their measured time.
std::optional<double> replay_ms(const std::vector<CachedBatch>& cached, const Consumer& consumer,
                                const std::vector<ObservedBatch>& batches, Deadline& deadline) {
  struct Sum {
    double ms = 0;
    int count = 0;
  };
  std::map<size_t, Sum> by_shape;
  constexpr size_t repeats = 2;
  for (size_t i = 0; i < repeats * cached.size() && deadline.allows_one_more(); ++i) {
    const CachedBatch& one = cached[i % cached.size()];
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
  constexpr size_t max_cached = 8;
  std::vector<CachedBatch> cached;
  std::map<size_t, size_t> cached_per_shape;
  const auto cache = [&](const Batch& batch) {
    if (cached.size() < max_cached && ++cached_per_shape[batch.shape] <= 2) cached.emplace_back(batch);
  };
  Observation observation;
  observation.consumer = consumer.name;
  constexpr double warm_by = 0.2, observed_by = 0.85;  // fractions of the time limit
  constexpr size_t min_batches = 2;
  Deadline deadline(options.seconds);
  for (size_t i = 0; i < options.warm_up && (i == 0 || deadline.allows_one_more(warm_by)); ++i) {
    const BatchLease batch = source->next(consumer.stream);
    consumer.consume(*batch);
    cache(*batch);
  }
  if (consumer.take_busy_ms) consumer.take_busy_ms();
  observation.before = source->stats();
  const double cpu_before_s = cpu_seconds();
  const Stopwatch whole;
  for (size_t i = 0; i < options.batches && (deadline.allows_one_more(observed_by) || i < min_batches); ++i) {
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
    observation.batches.push_back(one);
    if (options.progress) options.progress(i + 1);
  }
  observation.wall_s = whole.seconds(), observation.cpu_s = cpu_seconds() - cpu_before_s;
  observation.after = source->stats();
  if (consumer.take_busy_ms) observation.gpu_busy = std::min(1.0, consumer.take_busy_ms() / (observation.wall_s * 1e3));
  source.reset();
  observation.free_ms = replay_ms(cached, consumer, observation.batches, deadline);
  return observation;
}

}  // namespace myxtts
