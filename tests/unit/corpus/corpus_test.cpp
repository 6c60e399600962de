#include "corpus/corpus.h"

#include "audio/wav.h"
#include "base/error.h"
#include "base/files.h"
#include "corpus/pack.h"
#include "corpus/rows.h"
#include "loader/make_batch.h"
#include "plan/shapes.h"
#include "text/phonemes.h"
#include "text/utf8.h"

#include <cmath>
#include <map>

#include <gtest/gtest.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

BatchLease batch_of(const Corpus& corpus, const BatchPlan& plan, uint64_t epoch, size_t threads) {
  return make_batch(RowBuilder(corpus, plan, voice_arrays(), 1), plan.batch(epoch, 0), threads);
}

class CorpusFolder : public testing::Test {
 protected:
  fs::path folder = fs::path(testing::TempDir()) / "myxtts_corpus_test";
  Config config;
  void SetUp() override {
    fs::remove_all(folder);
    fs::create_directories(folder / "wavs");
    config.data.val_share = 0;
    config.data.text_tokens = "characters", config.data.blank_tokens = false;
    for (const char* id : {"a", "b"}) clip(id, 22050);
  }
  void TearDown() override { fs::remove_all(folder); }

  void clip(const std::string& id, size_t samples, float level = 0.3F) const {
    std::vector<float> tone(samples);
    for (size_t i = 0; i < samples; ++i) tone[i] = level * std::sin(0.05F * static_cast<float>(i));
    write_wav(folder / "wavs" / (id + ".wav"), tone, 22050);
  }
  void metadata(const std::string& text) const { write_file_atomically(folder / "metadata.csv", text); }
  Corpus open(const PrepareOptions& options = {}) const { return open_corpus(folder, config, options); }

  std::string reason_of(const std::string& row) const {
    metadata("a|good text\n" + row + "\nb|good text\n");
    const Corpus corpus = open();
    EXPECT_EQ(corpus.index.size(), 2U) << "the good rows stay";
    EXPECT_EQ(corpus.index.summary().rejected.size(), 1U);
    return corpus.index.summary().rejected.empty() ? "" : corpus.index.summary().rejected.front().reason;
  }
};

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(CorpusFolder, each_bad_row_is_named_and_nothing_else_is_lost) {
  EXPECT_CONTAINS(reason_of("c|text"), "missing");
  EXPECT_CONTAINS(reason_of("c|  "), "empty");
  EXPECT_CONTAINS(reason_of("c|\u200C\u00AD"), "nothing is left");
  EXPECT_CONTAINS(reason_of("c"), "fields");
  EXPECT_CONTAINS(reason_of("|text"), "no id");
  EXPECT_CONTAINS(reason_of("../../etc/passwd|text"), "out of the corpus");
  EXPECT_CONTAINS(reason_of("a|again"), "duplicate");
  EXPECT_CONTAINS(reason_of("c|bad \uFFFD letter"), "U+FFFD");
  EXPECT_CONTAINS(reason_of("c|bell \x07"), "U+0007");
  EXPECT_CONTAINS(reason_of("c|private \uE000"), "U+E000");
  clip("c", 500);
  EXPECT_CONTAINS(reason_of("c|text"), "too short");
  clip("c", 22050, 0.0005F);
  EXPECT_CONTAINS(reason_of("c|text"), "silent");
  write_file_atomically(folder / "wavs" / "c.wav", "RIFFnonsense");
  EXPECT_CONTAINS(reason_of("c|text"), "unreadable");
  write_file_atomically(folder / "wavs" / "c.wav", "");
  EXPECT_CONTAINS(reason_of("c|text"), "is empty");
  clip("c", 22050);
  EXPECT_CONTAINS(reason_of("c|\xFF\xFE"), "UTF-8");
  config.data.max_mel_frames = 100;
  clip("c", 220500);
  EXPECT_CONTAINS(reason_of("c|text"), "too long");
  config.data.overlong = "error";
  EXPECT_THROW(open(), Error);
}

// By .., by an absolute path, by a link: what a corpus names must be its own.
TEST_F(CorpusFolder, clips_outside_of_it_are_rejected_unless_they_are_allowed) {
  const fs::path outside = folder.string() + "_outside";
  fs::create_directories(outside / "clips");
  clip("c", 22050);
  fs::rename(folder / "wavs" / "c.wav", outside / "clips" / "c.wav");
  fs::create_symlink(outside / "clips" / "c.wav", folder / "wavs" / "linked.wav");
  fs::create_directory_symlink(outside / "clips", folder / "wavs" / "more");
  fs::create_symlink(folder / "wavs" / "a.wav", folder / "wavs" / "own.wav");
  const fs::path up = fs::path("..") / ".." / outside.filename() / "clips" / "c";
  metadata("a|good\nown|its own\nlinked|a link\nmore/c|a linked folder\n" + up.string() + "|up\n" +
           (outside / "clips" / "c").string() + "|absolute\n");
  const Corpus corpus = open();
  EXPECT_EQ(corpus.index.size(), 2U);
  ASSERT_EQ(corpus.index.summary().rejected.size(), 4U);
  for (const RejectedClip& clip : corpus.index.summary().rejected) {
    EXPECT_EQ(clip.code, Rejection::outside) << clip.id;
    EXPECT_CONTAINS(clip.reason, (outside / "clips" / "c").string());
  }
  config.data.allow_outside = true;
  EXPECT_EQ(open().index.size(), 6U);
  config.data.allow_outside = false;
  fs::rename(folder / "metadata.csv", outside / "metadata.csv");
  fs::create_symlink(outside / "metadata.csv", folder / "metadata.csv");
  EXPECT_THROW(open(), Error);
  config.data.allow_outside = true;
  EXPECT_EQ(open().index.size(), 6U);
  fs::remove_all(outside);
}

// An index comes with the corpus, and links may be changed after `prepare` has looked.
TEST_F(CorpusFolder, an_index_opens_nothing_outside_of_the_corpus) {
  metadata("a|good text\nb|good text\n");
  const fs::path outside = folder.string() + "_outside";
  fs::create_directories(outside);
  fs::copy_file(folder / "wavs" / "a.wav", outside / "a.wav", fs::copy_options::overwrite_existing);
  for (const fs::path& path : {fs::path("..") / outside.filename() / "a.wav", outside / "a.wav"}) {
    {
      const Corpus made = open();
      IndexWriter writer(made.index.path());
      CorpusClip clip = made.index.clip(0);
      clip.place.path = path;
      writer.add(clip), writer.add(made.index.clip(1));
      writer.finish(made.index.stamp(), made.index.summary());
    }
    const Corpus shipped = open();
    EXPECT_EQ(shipped.index.clip(0).place.path, path) << "the index was used as it is";
    EXPECT_THROW(read_clip(shipped.clip(0).place), Error) << path;
    EXPECT_NO_THROW(read_clip(shipped.clip(1).place));
    fs::remove(shipped.index.path());
  }
  open();
  fs::remove(folder / "wavs" / "b.wav");
  fs::create_symlink(outside / "a.wav", folder / "wavs" / "b.wav");
  EXPECT_THROW(read_clip(open().clip(1).place), Error);
  config.data.allow_outside = true;
  EXPECT_NO_THROW(read_clip(open().clip(1).place));
  fs::remove_all(outside);
}

TEST_F(CorpusFolder, a_linked_index_folder_is_not_written_to) {
  metadata("a|good text\nb|good text\n");
  const fs::path outside = folder.string() + "_outside";
  fs::create_directories(outside);
  fs::create_directory_symlink(outside, folder / ".myxtts");
  EXPECT_THROW(open(), Error);
  EXPECT_TRUE(fs::is_empty(outside));
  config.data.allow_outside = true;
  EXPECT_EQ(open().index.size(), 2U);
  fs::remove_all(outside);
}

TEST_F(CorpusFolder, absolute_paths_of_a_manifest_are_used_if_they_lie_in_it) {
  const fs::path outside = folder.string() + "_outside";
  fs::create_directories(outside);
  fs::copy_file(folder / "wavs" / "b.wav", outside / "b.wav", fs::copy_options::overwrite_existing);
  const auto line = [](const fs::path& path) {
    return fmt::format("{{\"audio_filepath\": \"{}\", \"text\": \"good text\"}}\n", path.string());
  };
  write_file_atomically(folder / "manifest.jsonl",
                        line(fs::canonical(folder) / "wavs" / "a.wav") + line(outside / "b.wav"));
  const Corpus corpus = open();
  ASSERT_EQ(corpus.index.size(), 1U);
  EXPECT_NO_THROW(read_clip(corpus.clip(0).place));
  EXPECT_EQ(corpus.index.summary().rejected.at(0).code, Rejection::outside);
  config.data.allow_outside = true;
  EXPECT_EQ(open().index.size(), 2U);
  fs::remove_all(outside);
}

TEST_F(CorpusFolder, a_linked_shard_is_refused_unless_it_is_named_itself) {
  metadata("a|good text\nb|good text\n");
  const fs::path outside = folder.string() + "_outside", linked = folder.string() + "_linked";
  fs::remove_all(outside), fs::remove_all(linked), fs::create_directories(linked);
  const fs::path shard = pack_corpus(open(), outside, {}).shards.at(0);
  fs::create_symlink(shard, linked / shard.filename());
  EXPECT_THROW(open_corpus(linked, config, {}), Error);
  const Corpus corpus = open_corpus(linked / shard.filename(), config, {});
  ASSERT_EQ(corpus.index.size(), 2U);
  EXPECT_NO_THROW(read_clip(corpus.clip(1).place));
  fs::remove_all(outside), fs::remove_all(linked);
}

TEST_F(CorpusFolder, a_clip_of_an_absurd_rate_is_rejected_and_ends_nothing) {
  config.data.overlong = "truncate", config.data.max_mel_frames = 100;
  for (const bool deep : {false, true}) {
    for (const auto& [rate, samples] : std::map<int, size_t>{{1, 100'000}, {9'999'991, 100'000}, {1000, 3'200'000}}) {
      write_wav(folder / "wavs" / "c.wav", std::vector<float>(samples, 0.5F), rate);
      metadata(fmt::format("a|good text\nb|good text\nc|{} Hz\n", rate));
      PrepareOptions options;
      options.deep = deep;
      const Corpus corpus = open(options);
      EXPECT_EQ(corpus.index.size(), 2U) << rate;
      EXPECT_EQ(corpus.index.summary().rejected.at(0).code, rate == 1000 ? Rejection::too_long : Rejection::unreadable);
    }
  }
}

TEST_F(CorpusFolder, a_line_without_end_is_one_rejected_row) {
  metadata("a|good\n" + std::string(3 << 20, 'x') + "\nb|good\n");
  const Corpus corpus = open();
  EXPECT_EQ(corpus.index.size(), 2U);
  EXPECT_CONTAINS(corpus.index.summary().rejected.at(0).reason, "longer than");
}

TEST_F(CorpusFolder, settings_that_change_an_index_have_one_of_their_own) {
  metadata("a|one\nb|two\n");
  const fs::path path = open().index.path();
  const auto path_with = [&](void (*change)(DataConfig&)) {
    Config changed = config;
    change(changed.data);
    return open_corpus(folder, changed, {}).index.path();
  };
  EXPECT_NE(path_with([](DataConfig& data) { data.blank_tokens = true; }), path);
  EXPECT_NE(path_with([](DataConfig& data) { data.max_mel_frames = 1000; }), path);
  EXPECT_NE(path_with([](DataConfig& data) { data.mel_overrides["magnitude_epsilon"] = "1e-8"; }), path);
  EXPECT_EQ(path_with([](DataConfig& data) { data.batch_size = {1, 1}; }), path);
  EXPECT_EQ(path_with([](DataConfig& data) { data.mel_overrides["n_mels"] = "80"; }), path);  // that of the preset
}

TEST_F(CorpusFolder, blanks_do_not_count_in_the_length_of_a_text) {
  metadata("a|twelve signs\nb|short\n");
  config.data.max_text_length = 12, config.data.blank_tokens = true;
  const Corpus corpus = open();
  ASSERT_EQ(corpus.index.size(), 2U);
  EXPECT_EQ(corpus.clip(0).length.tokens, 25U);
  config.data.max_text_length = 11;
  EXPECT_EQ(open().index.size(), 1U);
}

TEST_F(CorpusFolder, tokens_are_phonemes_if_they_can_be_and_the_choice_is_told) {
  metadata("a|good text\nb|good text\n");
  config.data.text_tokens = "auto";
  std::string said;
  const PrepareOptions options{.say = [&](const std::string& text) { said = text; }};
  const Corpus corpus = open(options);
  EXPECT_EQ(corpus.text_tokens, phonemes_available() ? "phonemes" : "characters");
  EXPECT_EQ(said.empty(), phonemes_available());
  config.data.language = "qqq";  // nobody speaks it
  const Corpus other = open(options);
  EXPECT_EQ(other.text_tokens, "characters");
  EXPECT_EQ(other.clip(0).symbols(), "good text");
  EXPECT_CONTAINS(said, "tokens are characters, because espeak-ng");
}

TEST_F(CorpusFolder, overlong_clips_are_cut_and_listed_when_asked) {
  clip("c", 220500);
  metadata("a|good text\nb|good text\nc|a text that is too long for its clip\n");
  config.data.overlong = "truncate", config.data.max_mel_frames = 100, config.data.max_text_length = 12;
  const Corpus corpus = open();
  ASSERT_EQ(corpus.index.size(), 3U);
  ASSERT_EQ(corpus.index.summary().truncated.size(), 1U);
  EXPECT_CONTAINS(corpus.index.summary().truncated[0].reason, "12 of 36 tokens");
  const CorpusClip cut = corpus.clip(2);
  EXPECT_EQ(cut.text, "a text that ");
  EXPECT_LE(cut.length.mel_frames, 100U);
  EXPECT_GE(cut.length.mel_frames, 99U);
  EXPECT_EQ(config.data.max_text_length, cut.length.tokens);
  config.data.batch_size = {3, 3};
  const BatchPlan plan(plan_shapes(corpus.index.lengths(), config.data).shapes, 1);
  EXPECT_TRUE(batch_of(corpus, plan, 0, 1)->replaced.empty());
}

TEST_F(CorpusFolder, an_index_is_used_again_until_something_changes) {
  metadata("a|one\nb|two\n");
  std::vector<std::string> said;
  PrepareOptions options;
  options.say = [&](const std::string& sentence) { said.push_back(sentence); };
  const fs::path path = open(options).index.path();
  const auto time = fs::last_write_time(path);
  EXPECT_EQ(open(options).index.path(), path);
  EXPECT_EQ(fs::last_write_time(path), time);
  EXPECT_TRUE(said.empty());

  metadata("a|one\nb|two, changed\n");
  EXPECT_EQ(open(options).clip(1).text, "two, changed");
  ASSERT_EQ(said.size(), 1U);
  EXPECT_CONTAINS(said[0], "metadata has changed");

  clip("b", 44100);  // only `prepare` looks at every file
  EXPECT_EQ(open(options).clip(1).samples, 22050U);
  options.check_files = true;
  EXPECT_EQ(open(options).clip(1).samples, 44100U);
  EXPECT_CONTAINS(said.back(), "a clip has changed");

  write_file_atomically(path, "MYXTTSIX but no index");
  EXPECT_EQ(open(options).index.size(), 2U);
  EXPECT_CONTAINS(said.back(), "rebuilding the index");

  config.data.language = "fa";
  EXPECT_NE(open(options).index.path(), path);  // another index beside it, so that both settings stay quick
  EXPECT_TRUE(fs::exists(path));
}

TEST_F(CorpusFolder, a_read_only_corpus_is_indexed_elsewhere) {
  metadata("a|one\nb|two\n");
  write_file_atomically(folder / ".myxtts", "a file where the folder would be");
  const fs::path cache = folder.parent_path() / "myxtts_cache_test";
  ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  const fs::path path = open().index.path();
  ::unsetenv("XDG_CACHE_HOME");
  EXPECT_TRUE(path.string().starts_with(cache.string())) << path;
  fs::remove_all(cache);
}

TEST_F(CorpusFolder, a_share_is_held_out_by_the_ids_alone) {
  std::string rows;
  for (int i = 0; i < 50; ++i) {
    clip(fmt::format("x{}", i), 22050);
    rows += fmt::format("x{}|text\n", i);
  }
  metadata(rows);
  config.data.val_share = 0.1;
  const auto held_out = [&] {
    std::set<std::string> ids;
    const Corpus corpus = open();
    for (size_t i = 0; i < corpus.index.size(); ++i) {
      if (corpus.index.lengths()[i].held_out != 0) ids.insert(corpus.clip(i).id);
    }
    return ids;
  };
  const std::set<std::string> ids = held_out();
  EXPECT_EQ(ids.size(), 5U);
  metadata("a|one\n" + rows);
  std::set<std::string> stayed;
  for (const std::string& id : held_out()) {
    if (ids.contains(id)) stayed.insert(id);
  }
  EXPECT_GE(stayed.size(), 4U);
}

TEST_F(CorpusFolder, silence_is_trimmed_once_and_the_batch_has_the_rest) {
  std::vector<float> samples(66150);
  for (size_t i = 22050; i < 44100; ++i) samples[i] = 0.3F * std::sin(0.05F * static_cast<float>(i));
  write_wav(folder / "wavs" / "c.wav", samples, 22050);
  metadata("c|text\n");
  config.data.trim_silence = true, config.data.batch_size = {1, 1};
  const Corpus corpus = open();
  const CorpusClip trimmed = corpus.clip(0);
  EXPECT_NEAR(static_cast<double>(trimmed.first_sample), 22050, 1600);
  EXPECT_NEAR(static_cast<double>(trimmed.samples), 22050, 3200);
  const BatchPlan plan(plan_shapes(corpus.index.lengths(), config.data).shapes, 1);
  EXPECT_EQ(batch_of(corpus, plan, 0, 1)->lengths.at(0).mel_frames, static_cast<int32_t>(trimmed.length.mel_frames));
}

TEST_F(CorpusFolder, every_layout_is_read) {
  write_file_atomically(folder / "metadata.csv",
                        "\xEF\xBB\xBF"
                        "a|Dr. A|doctor A\r\n\r\nb|سلام|\r\n");
  const auto rows_of = [&](const fs::path& where, const std::string& format = "id|text|normalised") {
    std::vector<CorpusRow> rows;
    read_rows(find_layout(where), format, [&](CorpusRow&& row) { rows.push_back(std::move(row)); });
    return rows;
  };
  std::vector<CorpusRow> rows = rows_of(folder);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].text, "doctor A");
  EXPECT_EQ(rows[1].text, "سلام");
  EXPECT_EQ(rows[1].line, 3);
  EXPECT_EQ(rows_of(folder, "id|speaker|text")[0].speaker, "Dr. A");
  write_file_atomically(folder / "pipes.csv", "a|spk|this | that\n");
  EXPECT_EQ(rows_of(folder / "pipes.csv", "id|speaker|text")[0].text, "this | that");
  write_file_atomically(folder / "languages.csv", "a|spk|fa|this | that\nb|spk|fa\n");
  rows = rows_of(folder / "languages.csv", "id|speaker|language|text");
  EXPECT_EQ(rows[0].language, "fa");
  EXPECT_EQ(rows[0].text, "this | that");
  EXPECT_CONTAINS(rows[1].problem.value().text, "3 of the 4 fields");

  write_file_atomically(folder / "metadata_train.csv", "a|one\n");
  write_file_atomically(folder / "metadata_eval.csv", "b|two\n");
  rows = rows_of(folder);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_FALSE(rows[0].held_out);
  EXPECT_TRUE(rows[1].held_out);

  write_file_atomically(folder / "clips.jsonl",
                        "{\"audio_filepath\": \"wavs/a.wav\", \"text\": \"one\", \"speaker\": \"s\", \"language\": "
                        "\"fa\", \"duration\": 1.0}\n"
                        "nonsense\n{\"text\": \"no path\"}\n{\"audio_filepath\": \"../x.wav\", \"text\": \"x\"}\n"
                        "{\"audio_filepath\": \"wavs/b.wav\", \"text\": \"two\", \"duration\": 9.0}\n");
  rows = rows_of(folder / "clips.jsonl");
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[0].id, "wavs/a");
  EXPECT_EQ(rows[0].speaker, "s");
  EXPECT_EQ(rows[0].language, "fa");
  EXPECT_CONTAINS(rows[1].problem.value().text, "JSON");
  EXPECT_CONTAINS(rows[2].problem.value().text, "audio_filepath");
  const Corpus corpus = open_corpus(folder / "clips.jsonl", config, {});
  EXPECT_EQ(corpus.index.size(), 1U);
  EXPECT_CONTAINS(corpus.index.summary().rejected.back().reason, "duration");
  EXPECT_EQ(corpus.clip(0).place.path, folder / "wavs" / "a.wav");
  EXPECT_THROW(find_layout(folder / "nowhere"), Error);
  EXPECT_THROW(find_layout(folder / "wavs"), Error);
}

TEST_F(CorpusFolder, a_batch_is_the_same_for_any_number_of_threads_and_padded_with_zeros) {
  clip("c", 30000);
  metadata("a|one\nb|two words\nc|three more words\n");
  config.data.batch_size = {3, 3};
  const Corpus corpus = open();
  const BatchPlan plan(plan_shapes(corpus.index.lengths(), config.data).shapes, 1);
  const BatchLease one = batch_of(corpus, plan, 0, 1), four = batch_of(corpus, plan, 0, 4);
  EXPECT_EQ(one->hash(), four->hash());
  EXPECT_NE(one->hash(), batch_of(corpus, plan, 1, 1)->hash());
  const Array& mel = (*one)["mel"];
  for (int64_t row = 0; row < one->rows(); ++row) {
    const auto last = static_cast<size_t>(((row + 1) * mel.dims[1] - 1) * mel.dims[2]);
    if (one->lengths[static_cast<size_t>(row)].mel_frames < mel.dims[1]) {
      EXPECT_EQ(mel.values<float>()[last], 0.0F);
    }
  }
}

TEST_F(CorpusFolder, a_clip_that_breaks_later_is_replaced_by_the_same_one_each_time) {
  for (const char* id : {"c", "d", "e"}) clip(id, 22050);
  metadata("a|one\nb|two\nc|three\nd|four\ne|five\n");
  config.data.batch_size = {5, 5};
  const Corpus corpus = open();
  const BatchPlan plan(plan_shapes(corpus.index.lengths(), config.data).shapes, 1);
  clip("c", 40000);                                            // longer
  write_file_atomically(folder / "wavs" / "e.wav", "broken");  // not audio
  std::vector<std::string> ids;
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    const BatchLease batch = batch_of(corpus, plan, epoch, 2);
    ASSERT_GE(batch->replaced.size(), 2U);
    std::set<std::string> bad;
    for (const BadClip& one : batch->replaced) {
      bad.insert(one.id);
      EXPECT_FALSE(one.replaced_by.empty());
      EXPECT_EQ(one.code, ErrorCode::changed);  // both have another size
      EXPECT_EQ(one.byte, -1);
    }
    EXPECT_EQ(bad, (std::set<std::string>{"c", "e"}));
    EXPECT_EQ(batch->clips.size(), 5U);
    std::vector<std::string> sorted;
    for (const uint32_t clip : batch->clips) sorted.push_back(corpus.clip(clip).id);
    std::sort(sorted.begin(), sorted.end());
    if (!ids.empty()) {
      EXPECT_EQ(sorted, ids);
    }
    ids = sorted;
  }
  const fs::path file = folder / "quarantine.jsonl";
  Quarantine quarantine(file);
  for (int i = 0; i < 2; ++i) quarantine.add(batch_of(corpus, plan, 0, 2)->replaced);
  Quarantine(file).add(batch_of(corpus, plan, 0, 2)->replaced);  // of a run that is resumed
  const std::string lines = read_text_file(file, 1 << 20);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2) << lines;
  EXPECT_CONTAINS(lines, "\"code\":\"changed\"");
  for (const char* id : {"a", "b", "d"}) write_file_atomically(folder / "wavs" / (std::string(id) + ".wav"), "broken");
  EXPECT_THROW(batch_of(corpus, plan, 0, 2), Error);
}

TEST_F(CorpusFolder, a_substitute_with_a_shorter_text_leaves_nothing_of_the_other) {
  for (const char* id : {"c", "d"}) clip(id, 22050);
  metadata("a|a rather long text that is longer than the others\nb|b\nc|c\nd|d\n");
  config.data.batch_size = {4, 4};
  const Corpus corpus = open();
  const BatchPlan plan(plan_shapes(corpus.index.lengths(), config.data).shapes, 1);
  write_file_atomically(folder / "wavs" / "a.wav", "broken");
  const BatchLease batch = batch_of(corpus, plan, 0, 1);
  for (size_t row = 0; row < 4; ++row) {
    EXPECT_EQ(batch->lengths[row].tokens, 1);
    const Array& tokens = (*batch)["tokens"];
    for (int64_t i = 1; i < tokens.dims[1]; ++i) {
      EXPECT_EQ(tokens.values<int32_t>()[row * static_cast<size_t>(tokens.dims[1]) + static_cast<size_t>(i)], 0);
    }
  }
}

TEST_F(CorpusFolder, the_share_is_held_out_of_every_speaker) {
  std::string rows;
  for (int i = 0; i < 60; ++i) {
    const std::string id = fmt::format("c{}", i);
    clip(id, 22050);
    rows += fmt::format("{}|{}|some text\n", id, i < 40 ? "many" : i < 59 ? "some" : "one");
  }
  metadata(rows);
  config.data.val_share = 0.1, config.data.metadata_format = "id|speaker|text";
  const Corpus corpus = open();
  std::map<std::string, int> held_out;
  for (size_t i = 0; i < corpus.index.size(); ++i) {
    const CorpusClip clip = corpus.clip(i);
    held_out[clip.speaker] += clip.length.held_out;
    EXPECT_EQ(clip.language, "en");
  }
  EXPECT_GE(held_out["many"], 4);
  EXPECT_GE(held_out["some"], 1);
  EXPECT_EQ(held_out["many"] + held_out["some"] + held_out["one"], 6);
}

TEST_F(CorpusFolder, a_clip_held_out_that_breaks_leaves_an_empty_row) {
  metadata("a|one\nb|two\n");
  config.data.val_share = 0.5, config.data.batch_size = {1, 1};
  const Corpus corpus = open();
  const BatchPlan plan(plan_shapes(corpus.index.lengths(), config.data).validation, 1, BatchPlan::Visit::every_clip);
  fs::remove_all(folder / "wavs");
  const BatchLease batch = batch_of(corpus, plan, 0, 1);
  EXPECT_EQ(batch->clips, std::vector<uint32_t>{no_clip});
  EXPECT_EQ(batch->lengths.at(0).mel_frames, 0);
  EXPECT_EQ(batch->replaced.size(), 1U);
}

TEST_F(CorpusFolder, persian_comes_back_from_its_tokens_unchanged) {
  const std::string text = "می‌خواهم به خانه بروم، پدرم آنجاست؟";
  clip("c", 66150);
  metadata("c|" + text + "\n");
  config.data.language = "fa";
  for (const bool blanks : {false, true}) {
    config.data.blank_tokens = blanks;
    const Corpus corpus = open();
    ASSERT_EQ(corpus.index.size(), 1U);
    const std::vector<uint16_t> tokens = corpus.vocabulary.encode(corpus.clip(0).text, blanks);
    EXPECT_EQ(corpus.vocabulary.decode(tokens), text);
    EXPECT_EQ(tokens.size(), corpus.index.lengths()[0].tokens);
  }
}

}  // namespace
}  // namespace myxtts
