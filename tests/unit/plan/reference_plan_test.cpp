#include "plan/reference_plan.h"

#include "base/random.h"

#include <set>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

struct Clips {
  std::vector<ClipLength> lengths;
  std::vector<ClipLabels> labels;
};

Clips random_clips(size_t count, uint32_t speakers) {
  Random random(5);
  Clips clips;
  for (size_t i = 0; i < count; ++i) {
    ClipLength length;
    length.mel_frames = 50 + static_cast<uint32_t>(random.below(600)), length.tokens = 10;
    length.held_out = i % 11 == 0 ? 1 : 0;
    clips.lengths.push_back(length);
    clips.labels.push_back({static_cast<uint32_t>(random.below(speakers)), 0});
  }
  return clips;
}

TEST(ReferencePlan, names_another_clip_of_the_same_speaker_that_is_trained_on) {
  const Clips clips = random_clips(500, 20);
  const ReferencePlan plan(clips.lengths, clips.labels, 256, 3);
  const ReferencePlan same(clips.lengths, clips.labels, 256, 3), other(clips.lengths, clips.labels, 256, 4);
  std::set<uint32_t> of_first;
  size_t differing = 0, filled = 0;
  for (uint64_t epoch = 0; epoch < 20; ++epoch) {
    for (uint32_t clip = 0; clip < clips.lengths.size(); ++clip) {
      const uint32_t reference = plan.reference_of(epoch, clip);
      ASSERT_EQ(reference, same.reference_of(epoch, clip));
      ASSERT_NE(reference, clip);
      ASSERT_EQ(clips.labels[reference].speaker, clips.labels[clip].speaker);
      ASSERT_EQ(clips.lengths[reference].held_out, 0U);
      differing += reference != other.reference_of(epoch, clip) ? 1 : 0;
      filled += clips.lengths[reference].mel_frames >= 256 ? 1 : 0;
    }
    of_first.insert(plan.reference_of(epoch, 0));
  }
  EXPECT_GT(of_first.size(), 5U);  // another one in another epoch
  EXPECT_GT(differing, 5000U);
  EXPECT_GT(filled, 9000U);  // of 10,000; by chance it would be 6,600
}

TEST(ReferencePlan, a_speaker_of_one_clip_is_its_own_reference) {
  Clips clips = random_clips(3, 1);
  for (ClipLength& length : clips.lengths) length.held_out = 0;
  clips.labels = {{0, 0}, {1, 0}, {1, 0}};
  clips.lengths[2].held_out = 1;
  const ReferencePlan plan(clips.lengths, clips.labels, 256, 1);
  EXPECT_EQ(plan.reference_of(0, 0), 0U);
  EXPECT_EQ(plan.reference_of(0, 1), 1U);
  EXPECT_EQ(plan.reference_of(0, 2), 1U);
}

TEST(ReferencePlan, a_stretch_lies_inside_its_clip) {
  const Clips clips = random_clips(50, 2);
  const ReferencePlan plan(clips.lengths, clips.labels, 256, 1);
  std::set<uint64_t> firsts;
  for (uint64_t epoch = 0; epoch < 200; ++epoch) {
    const uint64_t first = plan.first_sample(epoch, 7, 1000, 900);
    ASSERT_LE(first, 100U);
    firsts.insert(first);
    ASSERT_EQ(plan.first_sample(epoch, 7, 900, 900), 0U);
    ASSERT_EQ(plan.first_sample(epoch, 7, 10, 900), 0U);
  }
  EXPECT_GT(firsts.size(), 60U);
}

}  // namespace
}  // namespace myxtts
