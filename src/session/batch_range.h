// A stretch of batches of one epoch, as one rank of several gets them: what `batches` shows.
#pragma once

#include "session/open.h"

#include <cstdint>

namespace myxtts {

struct BatchRange {
  int64_t count = 5, epoch = 0, first = 0;
  int64_t rank = 0, world_size = 1;

  // Throws Error that names the flag.
  void validate() const;
  // Number of batches that there are of it. Throws Error if the epoch has none of them.
  uint64_t count_in(const BatchPlan& plan) const;
};

// Nothing is read ahead of the range or kept after it.
Feed plan_range(const BatchRange& range, const Config& config, const PlannedCorpus& planned, const Mode& mode);

}  // namespace myxtts
