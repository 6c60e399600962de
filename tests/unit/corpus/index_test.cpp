#include "corpus/index.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "plan/batch_plan.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t many = 200'000;
#else
constexpr size_t many = 10'000'000;
#endif

CorpusClip make_clip(size_t number, Random& random) {
  CorpusClip clip;
  clip.id = fmt::format("clip-{}", number);
  clip.speaker = number % 3 == 0 ? "نیما" : "";
  clip.language = number % 5 == 0 ? "fa" : "en";
  clip.text = "متن کوتاه";
  clip.place = ClipPlace(fs::path("wavs") / (clip.id + ".wav"));
  clip.place.bytes = 44 + 2 * number;
  clip.time_ns = static_cast<int64_t>(number) + 7;
  clip.sample_rate = 22050;
  clip.first_sample = number % 100, clip.samples = 1000 + number;
  clip.length.mel_frames = 95 + static_cast<uint32_t>(random.below(776));
  clip.length.tokens = 20 + static_cast<uint32_t>(random.below(150));
  clip.length.held_out = number % 50 == 0 ? 1 : 0;
  return clip;
}

size_t number_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<size_t>(std::ranges::find(names, name) - names.begin());
}

class Index : public testing::Test {
 protected:
  fs::path path = fs::path(testing::TempDir()) / "myxtts_index_test.index";
  void TearDown() override { fs::remove(path); }
  void write(size_t clips) const {
    Random random(1);
    IndexWriter writer(path);
    for (size_t i = 0; i < clips; ++i) writer.add(make_clip(i, random));
    CorpusSummary summary;
    summary.rejected = {{"x", "wavs/x.wav", Rejection::missing, "missing: «x»", 12}};
    summary.formats = {{"wav pcm_16", static_cast<int64_t>(clips)}};
    summary.symbols = {"ا", "ب"};
    summary.mel_mean = -5.5;
    writer.finish({11, 22}, summary);
  }
};

TEST_F(Index, gives_back_what_was_written) {
  write(1000);
  const CorpusIndex index(path);
  Random random(1);
  ASSERT_EQ(index.size(), 1000U);
  EXPECT_TRUE((index.stamp() == IndexStamp{11, 22}));
  for (size_t i = 0; i < index.size(); ++i) {
    const CorpusClip want = make_clip(i, random), got = index.clip(i);
    ASSERT_EQ(got.id, want.id);
    ASSERT_EQ(got.text, want.text);
    ASSERT_EQ(got.speaker, want.speaker);
    ASSERT_EQ(got.language, want.language);
    ASSERT_EQ(index.labels()[i].speaker, number_of(index.summary().speakers, want.speaker));
    ASSERT_EQ(got.place.path, want.place.path);
    ASSERT_EQ(got.place.bytes, want.place.bytes);
    ASSERT_EQ(got.first_sample, want.first_sample);
    ASSERT_EQ(got.samples, want.samples);
    ASSERT_EQ(got.time_ns, want.time_ns);
    ASSERT_EQ(got.length.mel_frames, want.length.mel_frames);
    ASSERT_EQ(index.lengths()[i].held_out, want.length.held_out);
  }
  EXPECT_EQ(index.summary().rejected.at(0).reason, "missing: «x»");
  EXPECT_EQ(index.summary().rejected.at(0).code, Rejection::missing);
  EXPECT_EQ(index.summary().symbols.size(), 2U);
  EXPECT_EQ(index.summary().mel_mean, -5.5);
  EXPECT_EQ(index.summary().languages, (std::vector<std::string>{"fa", "en"}));
  ASSERT_EQ(index.summary().speaker_times.size(), 4U);
  int64_t clips = 0;
  for (const SpeakerTime& time : index.summary().speaker_times) clips += time.clips;
  EXPECT_EQ(clips, 1000);
}

TEST_F(Index, nothing_is_left_of_one_that_was_not_finished) {
  {
    Random random(1);
    IndexWriter writer(path);
    writer.add(make_clip(0, random));
  }
  EXPECT_FALSE(fs::exists(path));
}

// Wherever a byte is wrong or the file ends early: an error when it is opened or when the clip is asked for, never a
// wrong answer.
TEST_F(Index, any_damage_is_noticed) {
  write(40);
  std::ifstream file(path, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  Random random(2);
  int noticed = 0, harmless = 0;
  for (int trial = 0; trial < 600; ++trial) {
    std::string bad = good;
    const size_t at = random.below(bad.size());
    if (trial % 4 == 0) {
      bad.resize(at);
    } else {
      bad[at] = static_cast<char>(bad[at] ^ static_cast<char>(1 + random.below(255)));
    }
    std::ofstream(path, std::ios::binary) << bad;
    try {
      const CorpusIndex index(path);
      Random again(1);
      for (size_t i = 0; i < index.size(); ++i) {
        const CorpusClip clip = index.clip(i), want = make_clip(i, again);
        ASSERT_EQ(clip.id + clip.text, want.id + want.text);
        ASSERT_EQ(clip.samples, want.samples);
        ASSERT_EQ(clip.length.mel_frames, want.length.mel_frames);
      }
      ++harmless;  // the zeros that fill up to a multiple of 8
    } catch (const Error&) {
      ++noticed;
    }
  }
  EXPECT_GT(noticed, 590);
  EXPECT_LT(harmless, 10);
}

TEST_F(Index, rates_and_lengths_that_no_clip_has_are_noticed) {
  Random random(1);
  const auto write_one = [&](const CorpusClip& clip, const std::string& rate) {
    IndexWriter writer(path);
    writer.add(clip);
    CorpusSummary summary;
    summary.sample_rates = {{rate, 1}};
    writer.finish({}, summary);
  };
  for (const std::string rate : {"", "x", "22050 Hz", "-1", "022050", "999999999999", "1"}) {
    write_one(make_clip(0, random), rate);
    EXPECT_THROW(CorpusIndex{path}, Error) << rate;
  }
  CorpusClip fast = make_clip(0, random), late = fast, endless = fast;
  fast.sample_rate = 9'999'991, late.first_sample = UINT64_MAX, endless.samples = uint64_t{1} << 40;
  for (const CorpusClip& clip : {fast, late, endless}) {
    write_one(clip, "22050");
    EXPECT_THROW(CorpusIndex(path).clip(0), Error);
  }
}

int64_t resident_kb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6));
  }
  return 0;
}

TEST_F(Index, ten_million_clips_open_within_a_gigabyte) {
  write(many);
  const int64_t before_kb = resident_kb();
  const Stopwatch opening;
  const CorpusIndex index(path);
  const double open_ms = opening.ms();
  const ShapePlan shapes = plan_shapes(index.lengths(), {});
  const double ready_ms = opening.ms();
  const BatchPlan plan(shapes.shapes, 1);
  plan.batch(7, 9'999);  // the first use touches memory
  const Stopwatch planning;
  const PlannedBatch batch = plan.batch(7, 10'000);
  const double plan_ms = planning.ms();
  EXPECT_EQ(index.clip(batch.clips[0]).sample_rate, 22050);
  fmt::print(
      "    {} clips: open {:.0f} ms, with shapes {:.0f} ms, a batch planned in {:.3f} ms, {:.0f} MB more resident\n",
      many, open_ms, ready_ms, plan_ms, static_cast<double>(resident_kb() - before_kb) / 1024);
  EXPECT_LT(resident_kb() - before_kb, 1'000'000);
}

}  // namespace
}  // namespace myxtts
