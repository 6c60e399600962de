#include "plan/shapes.h"

#include "base/error.h"
#include "base/random.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {

using Lengths = std::vector<ClipLength>;

Lengths lengths_of(const std::vector<int64_t>& frames) {
  Lengths clips;
  for (const int64_t length : frames) {
    ClipLength clip;
    clip.mel_frames = static_cast<uint32_t>(length);
    clip.tokens = static_cast<uint32_t>(length / 6) & 0x7FFFFFFFU;
    clips.push_back(clip);
  }
  return clips;
}

Lengths like_ljspeech(int clips) {
  Random random(1);
  std::vector<int64_t> frames;
  for (int i = 0; i < clips; ++i) {
    frames.push_back(static_cast<int64_t>(std::clamp(6.57 + 2.2 * random.normal(), 1.1, 10.1) * 22050 / 256));
  }
  return lengths_of(frames);
}

TEST(Shapes, the_default_pads_a_twentieth_where_one_shape_pads_a_third) {
  const Lengths corpus = like_ljspeech(13100);
  DataConfig data;
  const ShapePlan plan = plan_shapes(corpus, data);
  EXPECT_LE(plan.shapes.size(), 12U);
  EXPECT_LT(plan.padding, 0.05);
  data.shape_buckets = 8;
  EXPECT_LT(plan_shapes(corpus, data).padding, 0.07);
  data.shape_buckets = 1;
  const ShapePlan one = plan_shapes(corpus, data);
  EXPECT_EQ(one.shapes.size(), 1U);
  EXPECT_GT(one.padding, 0.25);
}

TEST(Shapes, clips_held_out_fit_the_same_shapes_and_are_not_trained_on) {
  Lengths corpus = like_ljspeech(800);
  for (size_t i = 0; i < corpus.size(); i += 10) corpus[i].held_out = 1;
  corpus[0].mel_frames = 2000;  // longer than all the others
  const ShapePlan plan = plan_shapes(corpus, {});
  size_t trained = 0, held_out = 0;
  for (size_t s = 0; s < plan.shapes.size(); ++s) {
    EXPECT_GE(static_cast<int64_t>(plan.shapes[s].clips.size()), plan.shapes[s].batch_size);
    EXPECT_EQ(plan.shapes[s].mel_frames, plan.validation[s].mel_frames);
    EXPECT_EQ(plan.shapes[s].text_length, plan.validation[s].text_length);
    for (const uint32_t clip : plan.shapes[s].clips) EXPECT_EQ(corpus[clip].held_out, 0U);
    for (const uint32_t clip : plan.validation[s].clips) {
      EXPECT_EQ(corpus[clip].held_out, 1U);
      EXPECT_LE(corpus[clip].mel_frames, plan.validation[s].mel_frames);
    }
    trained += plan.shapes[s].clips.size(), held_out += plan.validation[s].clips.size();
  }
  EXPECT_EQ(trained, 720U);
  EXPECT_EQ(held_out, 80U);
}

TEST(Shapes, every_clip_fits_its_shape_and_every_size_is_a_multiple_of_eight) {
  const Lengths corpus = like_ljspeech(500);
  const ShapePlan plan = plan_shapes(corpus, {});
  size_t clips = 0;
  for (const Shape& shape : plan.shapes) {
    EXPECT_EQ(shape.mel_frames % 8, 0);
    EXPECT_EQ(shape.text_length % 8, 0);
    EXPECT_GE(static_cast<int64_t>(shape.clips.size()), shape.batch_size);
    clips += shape.clips.size();
    for (const uint32_t clip : shape.clips) {
      EXPECT_LE(corpus[clip].mel_frames, shape.mel_frames);
      EXPECT_LE(corpus[clip].tokens, shape.text_length);
    }
  }
  EXPECT_EQ(clips, corpus.size());
}

TEST(Shapes, no_choice_of_two_shapes_pads_less_than_the_plan) {
  Random random(4);
  std::vector<int64_t> frames;
  for (int i = 0; i < 60; ++i) frames.push_back(8 + static_cast<int64_t>(random.below(200)));
  const Lengths corpus = lengths_of(frames);
  DataConfig data;
  data.shape_buckets = 2;
  data.batch_size = {1, 1};
  const ShapePlan plan = plan_shapes(corpus, data);
  const int64_t longest = plan.shapes.back().mel_frames;
  for (int64_t split = 8; split < longest; split += 8) {
    int64_t fed = 0, real = 0;
    for (const int64_t length : frames) fed += length <= split ? split : longest, real += length;
    EXPECT_LE(plan.padding, 1.0 - static_cast<double>(real) / static_cast<double>(fed) + 1e-12) << split;
  }
}

TEST(Shapes, batches_of_equal_frames_hold_more_short_clips) {
  DataConfig data;
  data.batch_frames = 8000;
  const ShapePlan plan = plan_shapes(like_ljspeech(5000), data);
  for (const Shape& shape : plan.shapes)
    EXPECT_NEAR(static_cast<double>(shape.batch_size * shape.mel_frames), 8000, 900);
}

TEST(Shapes, a_corpus_smaller_than_a_batch_has_one_shape_and_an_empty_one_is_refused) {
  EXPECT_EQ(plan_shapes(lengths_of({100, 200, 300}), {}).shapes.size(), 1U);
  EXPECT_THROW(plan_shapes(lengths_of({}), {}), Error);
}

TEST(Shapes, speakers_are_balanced_by_repeating_clips) {
  std::vector<ClipLength> lengths(120);
  std::vector<ClipLabels> labels(120);
  for (size_t i = 0; i < 120; ++i) {
    lengths[i].mel_frames = 100, lengths[i].tokens = 10;
    labels[i].speaker = i < 100 ? 0 : i < 116 ? 1 : 2;
  }
  DataConfig data;
  data.batch_size = {4, 4};
  const auto heard = [&](double balance) {
    std::vector<Shape> shapes = plan_shapes(lengths, data).shapes;
    balance_speakers(shapes, lengths, labels, balance);
    std::vector<size_t> counts(3);
    for (const Shape& shape : shapes) {
      for (const uint32_t clip : shape.clips) ++counts[labels[clip].speaker];
    }
    return counts;
  };
  EXPECT_EQ(heard(0), (std::vector<size_t>{100, 16, 4}));
  EXPECT_EQ(heard(1)[0], 100U);
  EXPECT_NEAR(static_cast<double>(heard(1)[1]), 100, 10);
  EXPECT_EQ(heard(1)[2], 100U);
  EXPECT_EQ(heard(0.5)[2], 20U);
  EXPECT_EQ(heard(0.7), heard(0.7));
}

TEST(SharedShapes, have_batches_that_ranks_divide_equally) {
  DataConfig data;
  data.batch_frames = 1000;
  ShapePlan plan;
  plan.shapes = plan.validation = {{8, 96, 10, {}}, {8, 200, 5, {}}};
  ShapePlan shared = plan;
  share_among_ranks(shared, data, 4);
  EXPECT_EQ(shared.shapes[0].batch_size, 8);
  EXPECT_EQ(shared.shapes[1].batch_size, 4);
  EXPECT_EQ(shared.validation[1].batch_size, 4);
  shared = plan;
  share_among_ranks(shared, data, 1);
  EXPECT_EQ(shared.shapes[0].batch_size, 10);
  EXPECT_THROW(share_among_ranks(shared, data, 8), Error);  // more ranks than clips in the longest shape
  data.batch_frames = 0;
  EXPECT_THROW(share_among_ranks(plan, data, 4), Error);  // a fixed batch size is not changed
  share_among_ranks(plan, data, 5);
}

}  // namespace
}  // namespace myxtts
