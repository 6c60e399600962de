#include "plan/batch_plan.h"

#include "base/error.h"
#include "base/random.h"
#include "plan/permutation.h"

#include <algorithm>

namespace myxtts {
namespace {

enum : uint64_t { substitute_order = 0, batch_order = 1, clip_order = 2, epoch_order = 3 };

}  // namespace

BatchPlan::BatchPlan(std::vector<Shape> shapes, uint64_t seed, Visit visit)
    : shapes_(std::move(shapes)), seed_(seed), visit_(visit) {
  batches_before_.push_back(0);
  for (const Shape& shape : shapes_) {
    const auto size = static_cast<uint64_t>(shape.batch_size);
    const uint64_t rounded_up = visit == Visit::every_clip ? size - 1 : 0;
    batches_before_.push_back(batches_before_.back() + (shape.clips.size() + rounded_up) / size);
  }
}

uint64_t BatchPlan::clips_left_out() const {
  if (visit_ == Visit::every_clip) return 0;
  uint64_t count = 0;
  for (const Shape& shape : shapes_) count += shape.clips.size() % static_cast<uint64_t>(shape.batch_size);
  return count;
}

uint64_t BatchPlan::key(uint64_t what, uint64_t epoch, uint64_t shape) const {
  return Random::mix(Random::mix(Random::mix(seed_ * 4 + what) + epoch) + shape);
}

PlannedBatch BatchPlan::batch(uint64_t epoch, uint64_t index) const { return batch(epoch, index, 0, 1); }

// Rows of other ranks are not computed: planning costs a rank no more, however many there are.
PlannedBatch BatchPlan::batch(uint64_t epoch, uint64_t index, uint64_t rank, uint64_t world_size) const {
  if (index >= batches_per_epoch()) {
    reject_input("plan", "there is no batch {}: an epoch has {}", index, batches_per_epoch());
  }
  const bool shuffled = visit_ == Visit::shuffled;
  const uint64_t place = shuffled ? Permutation(batches_per_epoch(), key(batch_order, epoch, 0))(index) : index;
  const size_t s = static_cast<size_t>(std::upper_bound(batches_before_.begin(), batches_before_.end(), place) -
                                       batches_before_.begin()) -
                   1;
  const Shape& shape = shapes_[s];
  const uint64_t clips = shape.clips.size(), size = static_cast<uint64_t>(shape.batch_size), left_out = clips % size;
  if (world_size == 0 || rank >= world_size || size % world_size != 0) {
    reject_input("plan", "rank {} of {} has no share in a batch of {}", rank, world_size, size);
  }
  const uint64_t first = (place - batches_before_[s]) * size, end = first + size;
  PlannedBatch batch{epoch, index, s, {}};
  batch.clips.reserve(size / world_size);
  if (!shuffled) {
    for (uint64_t at = first + rank; at < end; at += world_size) {
      batch.clips.push_back(at < clips ? shape.clips[at] : no_clip);
    }
    return batch;
  }
  const Permutation fixed(clips, key(clip_order, 0, s)), in_epoch(clips - left_out, key(epoch_order, epoch, s));
  const uint64_t window_end = (epoch + 1) * left_out;
  for (uint64_t at = first + rank; at < end; at += world_size) {
    batch.clips.push_back(shape.clips[fixed((window_end + in_epoch(at)) % clips)]);
  }
  return batch;
}

uint32_t BatchPlan::substitute(size_t shape, uint32_t clip, uint64_t attempt) const {
  const Shape& wanted = shapes_[shape];
  for (size_t s = shape + 1; s-- > 0;) {
    const Shape& from = shapes_[s];
    if (from.text_length > wanted.text_length || from.mel_frames > wanted.mel_frames) continue;
    const Permutation order(from.clips.size(), key(substitute_order, clip, s));
    for (uint64_t i = 0; i < from.clips.size(); ++i) {
      const uint32_t candidate = from.clips[order(i)];
      if (candidate != clip && attempt-- == 0) return candidate;
    }
  }
  return no_clip;
}

}  // namespace myxtts
