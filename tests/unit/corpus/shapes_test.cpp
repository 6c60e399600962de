#include "corpus/shapes.h"

#include "base/error.h"
#include "base/random.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {

Corpus corpus_of(const std::vector<int64_t>& frames) {
  Corpus corpus;
  for (const int64_t length : frames) {
    CorpusClip clip;
    clip.mel_frames = length;
    clip.tokens = length / 6;
    corpus.clips.push_back(clip);
  }
  return corpus;
}

Corpus like_ljspeech(int clips) {
  Random random(1);
  std::vector<int64_t> frames;
  for (int i = 0; i < clips; ++i) {
    frames.push_back(static_cast<int64_t>(std::clamp(6.57 + 2.2 * random.normal(), 1.1, 10.1) * 22050 / 256));
  }
  return corpus_of(frames);
}

TEST(Shapes, eight_shapes_pad_little_where_one_pads_a_third) {
  const Corpus corpus = like_ljspeech(13100);
  DataConfig data;
  const ShapePlan eight = plan_shapes(corpus, data);
  data.shape_buckets = 1;
  const ShapePlan one = plan_shapes(corpus, data);
  EXPECT_LE(eight.shapes.size(), 8U);
  EXPECT_LT(eight.padding, 0.07);
  EXPECT_GT(one.padding, 0.25);
  EXPECT_EQ(one.shapes.size(), 1U);
}

TEST(Shapes, every_clip_fits_its_shape_and_every_size_is_a_multiple_of_eight) {
  const Corpus corpus = like_ljspeech(500);
  const ShapePlan plan = plan_shapes(corpus, {});
  size_t clips = 0;
  for (const Shape& shape : plan.shapes) {
    EXPECT_EQ(shape.mel_frames % 8, 0);
    EXPECT_EQ(shape.text_length % 8, 0);
    EXPECT_GE(static_cast<int64_t>(shape.clips.size()), shape.batch_size);
    clips += shape.clips.size();
    for (const uint32_t clip : shape.clips) {
      EXPECT_LE(corpus.clips[clip].mel_frames, shape.mel_frames);
      EXPECT_LE(corpus.clips[clip].tokens, shape.text_length);
    }
  }
  EXPECT_EQ(clips, corpus.clips.size());
}

TEST(Shapes, no_choice_of_two_shapes_pads_less_than_the_plan) {
  Random random(4);
  std::vector<int64_t> frames;
  for (int i = 0; i < 60; ++i) frames.push_back(8 + static_cast<int64_t>(random.below(200)));
  const Corpus corpus = corpus_of(frames);
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
  EXPECT_EQ(plan_shapes(corpus_of({100, 200, 300}), {}).shapes.size(), 1U);
  EXPECT_THROW(plan_shapes(corpus_of({}), {}), Error);
}

}  // namespace
}  // namespace myxtts
