#include "session/batch_range.h"

#include "base/error.h"

#include <algorithm>

namespace myxtts {

void BatchRange::validate() const {
  if (count < 1 || epoch < 0 || first < 0 || rank < 0 || world_size < 1) {
    reject_input("batches",
                 "--num-batches and --world-size must be at least 1, --epoch, --start-batch and --rank at least 0");
  }
}

uint64_t BatchRange::count_in(const BatchPlan& plan) const {
  const auto begin = static_cast<uint64_t>(first);
  if (begin >= plan.batches_per_epoch()) {
    reject_input("batches", "--start-batch is {}", first,
                 way_out("an epoch has batches 0 to {}", plan.batches_per_epoch() - 1));
  }
  plan.batch(static_cast<uint64_t>(epoch), begin, static_cast<uint64_t>(rank), static_cast<uint64_t>(world_size));
  return std::min(static_cast<uint64_t>(count), plan.batches_per_epoch() - begin);
}

Feed plan_range(const BatchRange& range, const Config& config, const PlannedCorpus& planned, const Mode& mode) {
  const uint64_t count = range.count_in(planned.plan);
  Feed feed = plan_feed(config, planned.corpus, planned.plan, mode);
  feed.loader.epoch = static_cast<uint64_t>(range.epoch), feed.loader.index = static_cast<uint64_t>(range.first);
  feed.loader.rank = static_cast<uint64_t>(range.rank);
  feed.loader.world_size = static_cast<uint64_t>(range.world_size);
  feed.loader.ring_batches = std::min<size_t>(feed.loader.ring_batches, std::max<uint64_t>(2, count));
  feed.loader.gpu_cache_bytes = feed.loader.host_cache_bytes = 0;
  return feed;
}

}  // namespace myxtts
