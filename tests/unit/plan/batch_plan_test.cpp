#include "plan/batch_plan.h"

#include "base/error.h"
#include "base/random.h"
#include "plan/permutation.h"

#include <numeric>
#include <set>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

std::vector<Shape> random_shapes(Random& random) {
  std::vector<Shape> shapes;
  uint32_t next = 0;
  for (uint64_t s = 0; s < 1 + random.below(6); ++s) {
    Shape shape{8, 8, static_cast<int64_t>(4 * (1 + random.below(6))), {}};
    shape.clips.resize(static_cast<size_t>(shape.batch_size) + random.below(150));
    std::iota(shape.clips.begin(), shape.clips.end(), next);
    next += static_cast<uint32_t>(shape.clips.size());
    shapes.push_back(shape);
  }
  return shapes;
}

TEST(Permutation, visits_every_number_once) {
  for (const uint64_t size : {1UL, 2UL, 3UL, 17UL, 64UL, 1000UL}) {
    std::set<uint64_t> seen;
    const Permutation permutation(size, 99);
    for (uint64_t i = 0; i < size; ++i) {
      EXPECT_LT(permutation(i), size);
      seen.insert(permutation(i));
    }
    EXPECT_EQ(seen.size(), size);
  }
}

TEST(Plan, no_clip_twice_an_epoch_and_each_at_least_once_in_two) {
  Random random(2);
  for (int trial = 0; trial < 50; ++trial) {
    const std::vector<Shape> shapes = random_shapes(random);
    const BatchPlan plan(shapes, random.next());
    const uint64_t clips = shapes.back().clips.back() + 1;
    for (uint64_t epoch = 5; epoch < 8; ++epoch) {
      std::set<uint32_t> both;
      for (const uint64_t e : {epoch, epoch + 1}) {
        std::set<uint32_t> seen;
        for (uint64_t i = 0; i < plan.batches_per_epoch(); ++i) {
          const PlannedBatch batch = plan.batch(e, i);
          for (const uint32_t clip : batch.clips) {
            ASSERT_TRUE(seen.insert(clip).second);
            const auto& own = shapes[batch.shape].clips;
            ASSERT_TRUE(clip >= own.front() && clip <= own.back());
          }
        }
        EXPECT_EQ(seen.size() + plan.clips_left_out(), clips);
        both.insert(seen.begin(), seen.end());
      }
      EXPECT_EQ(both.size(), clips);
    }
  }
}

TEST(Plan, validation_visits_every_clip_once_with_empty_rows_at_the_end) {
  Random random(8);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<Shape> shapes = random_shapes(random);
    shapes.front().clips.resize(random.below(4));
    const BatchPlan plan(shapes, 1, BatchPlan::Visit::every_clip);
    std::set<uint32_t> seen;
    size_t clips = 0;
    for (const Shape& shape : shapes) clips += shape.clips.size();
    for (uint64_t i = 0; i < plan.batches_per_epoch(); ++i) {
      const PlannedBatch batch = plan.batch(0, i);
      ASSERT_EQ(static_cast<int64_t>(batch.clips.size()), shapes[batch.shape].batch_size);
      ASSERT_NE(batch.clips.front(), no_clip);
      for (const uint32_t clip : batch.clips) {
        if (clip != no_clip) {
          ASSERT_TRUE(seen.insert(clip).second);
        }
      }
    }
    EXPECT_EQ(seen.size(), clips);
    EXPECT_EQ(plan.clips_left_out(), 0U);
  }
}

TEST(Plan, substitutes_are_others_of_the_same_shape_and_always_the_same) {
  Random random(9);
  const std::vector<Shape> shapes = random_shapes(random);
  const BatchPlan plan(shapes, 5);
  const std::vector<uint32_t>& clips = shapes[0].clips;
  std::set<uint32_t> seen;
  for (uint64_t attempt = 0; attempt + 1 < clips.size(); ++attempt) {
    const uint32_t substitute = plan.substitute(0, clips[3], attempt);
    EXPECT_NE(substitute, clips[3]);
    EXPECT_EQ(substitute, BatchPlan(shapes, 5).substitute(0, clips[3], attempt));
    EXPECT_TRUE(seen.insert(substitute).second);
  }
  EXPECT_EQ(plan.substitute(0, clips[3], clips.size() - 1), no_clip);
}

TEST(Plan, seeds_and_epochs_differ_and_repeat) {
  Random random(3);
  const std::vector<Shape> shapes = random_shapes(random);
  const BatchPlan plan(shapes, 1), again(shapes, 1), other(shapes, 2);
  EXPECT_EQ(plan.batch(3, 0).clips, again.batch(3, 0).clips);
  EXPECT_NE(plan.batch(3, 0).clips, other.batch(3, 0).clips);
  EXPECT_NE(plan.batch(3, 0).clips, plan.batch(4, 0).clips);
}

TEST(Plan, ranks_share_a_batch_whatever_their_number) {
  Random random(6);
  const BatchPlan plan(random_shapes(random), 1);
  for (uint64_t index = 0; index < plan.batches_per_epoch(); ++index) {
    for (const uint64_t world : {2UL, 4UL}) {
      const std::vector<uint32_t> whole = plan.batch(0, index).clips;
      std::vector<uint32_t> joined(whole.size(), no_clip);
      for (uint64_t rank = 0; rank < world; ++rank) {
        const auto part = plan.batch(0, index, rank, world).clips;
        ASSERT_EQ(part.size(), whole.size() / world);
        for (size_t row = 0; row < part.size(); ++row) joined[rank + row * world] = part[row];
      }
      EXPECT_EQ(joined, whole);
    }
  }
  EXPECT_THROW(plan.batch(0, 0, 2, 2), Error);
  EXPECT_THROW(plan.batch(0, plan.batches_per_epoch()), Error);
}

// Too many to walk: it ends only if no table and no walk is needed.
TEST(Permutation, any_number_of_any_size_is_computed_directly) {
  const uint64_t size = uint64_t{1} << 60;
  std::set<uint64_t> seen;
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint64_t to = Permutation(size, 99)(size - 1 - i);
    EXPECT_LT(to, size);
    EXPECT_TRUE(seen.insert(to).second);
  }
}

TEST(Plan, any_batch_of_ten_million_clips_is_full) {
  Shape shape{8, 8, 32, std::vector<uint32_t>(10'000'000)};
  std::iota(shape.clips.begin(), shape.clips.end(), 0U);
  const BatchPlan plan({shape}, 1);
  EXPECT_EQ(plan.batch(7, 10'000).clips.size(), 32U);
}

}  // namespace
}  // namespace myxtts
