// Which clips make which batch: a pure function of (seed, epoch, index), in constant time, whatever the number of
// workers or ranks. Immutable; any thread.
//
// Each shape's clips are cut into full batches; the few that do not fill one are left out of this epoch. They are a
// window that moves on by its own width every epoch, so a clip left out of one epoch is never left out of the next.
// Validation visits every clip instead, in order, with empty rows at the end of each shape.
#pragma once

#include "plan/shapes.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace myxtts {

struct PlannedBatch {
  uint64_t epoch = 0, index = 0;
  size_t shape = 0;
  std::vector<uint32_t> clips;  // numbers in the index, or no_clip
};
constexpr uint32_t no_clip = std::numeric_limits<uint32_t>::max();  // an empty row

class BatchPlan {
 public:
  enum class Visit { shuffled, every_clip };

  BatchPlan(std::vector<Shape> shapes, uint64_t seed, Visit visit = Visit::shuffled);

  const std::vector<Shape>& shapes() const { return shapes_; }
  uint64_t batches_per_epoch() const { return batches_before_.back(); }
  uint64_t clips_left_out() const;  // of each epoch
  uint64_t seed() const { return seed_; }
  bool visits_every_clip() const { return visit_ == Visit::every_clip; }

  // `index` below batches_per_epoch(). The whole batch, for all ranks.
  PlannedBatch batch(uint64_t epoch, uint64_t index) const;

  // The rows of rank `rank` of `world_size`, which divides the batch size: every world_size-th, so that each rank has
  // its share of the first rows, which have references.
  PlannedBatch batch(uint64_t epoch, uint64_t index, uint64_t rank, uint64_t world_size) const;

  // The clip that takes the place of one that cannot be read, always the same: of its shape, then of smaller ones.
  // `attempt` counts from 0 where the substitute cannot be read either. no_clip when there is none left.
  uint32_t substitute(size_t shape, uint32_t clip, uint64_t attempt) const;

 private:
  uint64_t key(uint64_t what, uint64_t epoch, uint64_t shape) const;

  std::vector<Shape> shapes_;
  std::vector<uint64_t> batches_before_;  // per shape, with the total last
  uint64_t seed_;
  Visit visit_;
};

}  // namespace myxtts
