#include "diagnose/observation.h"

#include "base/clock.h"
#include "device/device.h"
#include "diagnose/observer.h"

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

// Consumes cached batches again: data cost nothing then.
void replay(const std::vector<CachedBatch>& cached, const Consumer& consumer, Observer& observer, Deadline& deadline) {
  constexpr size_t repeats = 2;
  for (size_t i = 0; i < repeats * cached.size() && deadline.allows_one_more(); ++i) {
    const CachedBatch& one = cached[i % cached.size()];
    const Stopwatch clock;
    consumer.consume(one.batch());
    observer.replayed(one.batch().shape, clock.ms());
  }
}

}  // namespace

Observation observe(std::unique_ptr<BatchSource> source, const Consumer& consumer, const ObserveOptions& options) {
  constexpr size_t max_cached = 8;
  std::vector<CachedBatch> cached;
  std::map<size_t, size_t> cached_per_shape;
  const auto cache = [&](const Batch& batch) {
    if (cached.size() < max_cached && ++cached_per_shape[batch.shape] <= 2) cached.emplace_back(batch);
  };
  Observer observer([&source] { return source->stats(); });
  constexpr double warm_by = 0.2, observed_by = 0.85;  // fractions of the time limit
  constexpr size_t min_batches = 2;
  Deadline deadline(options.seconds);
  for (size_t i = 0; i < options.warm_up && (i == 0 || deadline.allows_one_more(warm_by)); ++i) {
    const BatchLease batch = source->next(consumer.stream);
    consumer.consume(*batch);
    cache(*batch);
  }
  if (consumer.take_busy_ms) consumer.take_busy_ms();
  observer.begin();
  for (size_t i = 0; i < options.batches && (deadline.allows_one_more(observed_by) || i < min_batches); ++i) {
    observer.ask();
    const BatchLease batch = source->next(consumer.stream);
    observer.take(batch.get());
    consumer.consume(*batch);
    observer.done();
    if (options.progress) options.progress(i + 1);
  }
  observer.end();
  const double busy_ms = consumer.take_busy_ms ? consumer.take_busy_ms() : 0;
  source.reset();
  replay(cached, consumer, observer, deadline);
  Observation observation = observer.finish();
  observation.consumer = consumer.name;
  if (consumer.take_busy_ms) observation.gpu_busy = std::min(1.0, busy_ms / (observation.wall_s * 1e3));
  return observation;
}

}  // namespace myxtts
