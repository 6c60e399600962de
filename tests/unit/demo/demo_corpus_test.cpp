#include "demo/demo_corpus.h"

#include "audio/clip.h"
#include "base/error.h"
#include "base/files.h"
#include "demo/graphemes.h"
#include "demo/voice.h"
#include "demo/words.h"
#include "text/utf8.h"

#include <cmath>

#include <gtest/gtest.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

double rms(const std::vector<float>& samples) {
  double energy = 0;
  for (const float x : samples) energy += x * x;
  return std::sqrt(energy / static_cast<double>(samples.size()));
}

TEST(DemoWords, every_letter_has_a_sound) {
  Random random(3);
  for (const std::string& language : formant_languages()) {
    for (int i = 0; i < 300; ++i) {
      for (const char32_t letter : decode_utf8(demo_sentence(language, random))) {
        EXPECT_NE(find_grapheme(letter), nullptr) << language << " letter " << static_cast<uint32_t>(letter);
      }
    }
  }
}

TEST(DemoVoice, longer_texts_last_longer_and_speakers_differ) {
  const auto once = synthesize("garden", demo_speaker(0), 22050, 1);
  EXPECT_NEAR(static_cast<double>(synthesize("garden garden", demo_speaker(0), 22050, 1).size()),
              2.0 * static_cast<double>(once.size()), 0.2 * static_cast<double>(once.size()));
  EXPECT_NEAR(rms(once), 0.08, 0.001);
  EXPECT_NE(once, synthesize("garden", demo_speaker(1), 22050, 1));
  EXPECT_TRUE(synthesize("", demo_speaker(0), 22050, 1).empty());
}

TEST(DemoVoice, is_finite_and_inside_the_range_at_any_rate) {
  for (const int rate : {8000, 16000, 22050, 48000}) {
    for (const float x : synthesize("six zebra sailors, jumping.", demo_speaker(5), rate, 9)) {
      ASSERT_TRUE(std::isfinite(x) && std::abs(x) <= 0.96F) << rate;
    }
  }
}

TEST(DemoCorpus, is_laid_out_like_ljspeech_and_refuses_a_corpus_that_is_not_its_own) {
  const fs::path folder = fs::path(testing::TempDir()) / "myxtts_demo_test";
  fs::remove_all(folder);
  DemoCorpusSettings settings;
  settings.clips = 5;
  int last = 0;
  const DemoCorpusSummary made = make_demo_corpus(folder, settings, [&](int done) { last = done; });
  EXPECT_EQ(made.clips, 5);
  EXPECT_EQ(last, 5);
  EXPECT_TRUE(read_text_file(folder / "metadata.csv", 1 << 20).starts_with("demo-00001|"));
  EXPECT_EQ(read_clip_info(folder / "wavs" / "demo-00005.wav").format, "wav pcm_16");
  fs::remove(folder / "demo-corpus.txt");
  EXPECT_THROW(make_demo_corpus(folder, settings, [](int) {}), Error);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace myxtts
