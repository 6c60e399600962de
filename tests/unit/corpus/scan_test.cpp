#include "corpus/scan.h"

#include "audio/wav.h"
#include "base/error.h"
#include "base/files.h"
#include "corpus/batch.h"
#include "corpus/metadata.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

class CorpusFolder : public testing::Test {
 protected:
  fs::path folder = fs::path(testing::TempDir()) / "myxtts_scan_test";
  void SetUp() override {
    fs::remove_all(folder);
    fs::create_directories(folder / "wavs");
    for (const char* id : {"a", "b"}) clip(id, 22050);
  }
  void TearDown() override { fs::remove_all(folder); }
  void clip(const std::string& id, size_t samples) {
    write_wav(folder / "wavs" / (id + ".wav"), std::vector<float>(samples, 0.1F), 22050);
  }
  std::string reason_of(const std::string& row, const Config& config = {}) {
    write_file_atomically(folder / "metadata.csv", "a|good text\n" + row + "\nb|good text\n");
    const Corpus corpus = scan_corpus(folder, config, {});
    EXPECT_EQ(corpus.clips.size(), 2U) << "the good rows stay";
    EXPECT_EQ(corpus.rejected.size(), 1U);
    return corpus.rejected.empty() ? "" : corpus.rejected.front().reason;
  }
};

TEST_F(CorpusFolder, each_bad_row_is_named_and_nothing_else_is_lost) {
  EXPECT_NE(reason_of("c|text").find("missing"), std::string::npos);
  EXPECT_NE(reason_of("c|  ").find("empty"), std::string::npos);
  EXPECT_NE(reason_of("c").find("empty"), std::string::npos);
  EXPECT_NE(reason_of("|text").find("no id"), std::string::npos);
  EXPECT_NE(reason_of("../../etc/passwd|text").find("out of the corpus"), std::string::npos);
  EXPECT_NE(reason_of("a|again").find("duplicate"), std::string::npos);
  clip("c", 500);
  EXPECT_NE(reason_of("c|text").find("too short"), std::string::npos);
  write_file_atomically(folder / "wavs" / "c.wav", "RIFFnonsense");
  EXPECT_NE(reason_of("c|text").find("unreadable"), std::string::npos);
  write_file_atomically(folder / "wavs" / "c.wav", "");
  EXPECT_NE(reason_of("c|text").find("is empty"), std::string::npos);
  clip("c", 22050);
  EXPECT_NE(reason_of("c|\xFF\xFE").find("UTF-8"), std::string::npos);
  Config config;
  config.data.max_mel_frames = 100;
  clip("c", 220500);
  EXPECT_NE(reason_of("c|text", config).find("too long"), std::string::npos);
  config.data.overlong = "error";
  EXPECT_THROW(scan_corpus(folder, config, {}), Error);
}

TEST_F(CorpusFolder, reads_bom_crlf_and_the_normalised_column) {
  write_file_atomically(folder / "metadata.csv",
                        "\xEF\xBB\xBF"
                        "a|Dr. A|doctor A\r\n\r\nb|سلام|\r\n");
  const auto rows = read_metadata(folder, "id|text|normalised");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].id, "a");
  EXPECT_EQ(rows[0].text, "doctor A");
  EXPECT_EQ(rows[1].text, "سلام");
  EXPECT_EQ(rows[1].line, 3);
  EXPECT_EQ(read_metadata(folder, "id|speaker|text")[0].speaker, "Dr. A");
  EXPECT_THROW(read_metadata(folder / "nowhere", "id|text|normalised"), Error);
}

TEST_F(CorpusFolder, a_batch_is_the_same_for_any_number_of_threads_and_padded_with_zeros) {
  clip("c", 30000);
  write_file_atomically(folder / "metadata.csv", "a|one\nb|two words\nc|three more words\n");
  Config config;
  config.data.batch_size = {3, 3};
  const Corpus corpus = scan_corpus(folder, config, {});
  const BatchPlan plan(plan_shapes(corpus, config.data).shapes, 1);
  const Shape& shape = plan.shapes()[0];
  const Batch one = make_batch(corpus, shape, plan.batch(0, 0), 1),
              four = make_batch(corpus, shape, plan.batch(0, 0), 4);
  EXPECT_EQ(one.hash(), four.hash());
  EXPECT_NE(one.hash(), make_batch(corpus, shape, plan.batch(1, 0), 1).hash());
  for (int64_t row = 0; row < one.rows; ++row) {
    const auto last = static_cast<size_t>(((row + 1) * one.mel_frames - 1) * one.n_mels);
    if (one.mel_lengths[static_cast<size_t>(row)] < one.mel_frames) {
      EXPECT_EQ(one.mel[last], 0.0F);
    }
  }
  clip("c", 40000);  // changed behind our back
  EXPECT_THROW(make_batch(corpus, shape, plan.batch(0, 0), 1), Error);
}

}  // namespace
}  // namespace myxtts
