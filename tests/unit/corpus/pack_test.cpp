#include "corpus/pack.h"

#include "audio/codec.h"
#include "audio/wav.h"
#include "base/error.h"
#include "base/files.h"
#include "base/folder_lock.h"
#include "base/hash.h"
#include "base/random.h"
#include "corpus/tar.h"

#include <cmath>
#include <map>

#include <gtest/gtest.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

class PackFolder : public testing::Test {
 protected:
  fs::path folder = fs::path(testing::TempDir()) / "myxtts_pack_test";
  std::vector<CorpusClip> clips;

  void SetUp() override {
    fs::remove_all(folder);
    fs::create_directories(folder / "wavs");
    Random random(1);
    for (const std::string id : {"one", "deep/er/two", "سلام", "four \"quoted\""}) {
      std::vector<float> samples(3000 + random.below(3000));
      for (float& sample : samples) sample = static_cast<float>(random.uniform(-1.1, 1.1));
      samples[150] = -1.0F;
      const fs::path path = folder / "wavs" / (std::to_string(clips.size()) + ".wav");
      write_wav(path, samples, 16000);
      add(id, path, 100, samples.size() - 300);
    }
    clips[1].length.held_out = 1;
  }
  void TearDown() override { fs::remove_all(folder); }

  void add(const std::string& id, const ClipPlace& place, uint64_t first, uint64_t samples) {
    CorpusClip clip;
    clip.id = id;
    clip.speaker = "گوینده";
    clip.text = "text of " + id + "\n\x01";
    clip.place = place;
    if (!place.part) clip.place.bytes = fs::file_size(place.path);
    clip.sample_rate = read_clip_info(place).sample_rate;
    clip.first_sample = first;
    clip.samples = samples;
    clip.length.mel_frames = 10, clip.length.tokens = 5;
    clips.push_back(clip);
  }
  CorpusIndex index() const {
    IndexWriter writer(folder / "index");
    for (const CorpusClip& clip : clips) writer.add(clip);
    writer.finish({}, {});
    return CorpusIndex(folder / "index");
  }
  std::vector<PackedClip> pack(const std::string& name, const PackOptions& options = {}) const {
    std::vector<PackedClip> packed;
    for (const fs::path& shard : pack_corpus(index(), folder / name, options).shards) {
      for (const PackedClip& clip : read_pack_index(shard)) packed.push_back(clip);
    }
    return packed;
  }
  std::string read(const fs::path& path) const { return read_text_file(path, 1 << 26); }
  fs::path shard(const std::string& name) const { return folder / name / "shard-00000.tar"; }
};

TEST_F(PackFolder, every_clip_comes_back_sample_for_sample_with_its_text) {
  uint64_t last_done = 0;
  PackOptions options;
  options.progress = [&](uint64_t done, uint64_t total) {
    EXPECT_EQ(done, ++last_done);
    EXPECT_EQ(total, clips.size());
  };
  const PackReport report = pack_corpus(index(), folder / "pack", options);
  ASSERT_EQ(report.shards, std::vector{shard("pack")});
  EXPECT_EQ(report.clips, clips.size());
  EXPECT_EQ(report.bytes, fs::file_size(shard("pack")));
  EXPECT_EQ(last_done, clips.size());
  const std::vector<PackedClip> packed = read_pack_index(shard("pack"));
  ASSERT_EQ(packed.size(), clips.size());
  for (size_t i = 0; i < clips.size(); ++i) {
    EXPECT_EQ(packed[i].id, clips[i].id);
    EXPECT_EQ(packed[i].speaker, clips[i].speaker);
    EXPECT_EQ(packed[i].text, clips[i].text);
    EXPECT_EQ(packed[i].held_out, i == 1);
    const ClipPlace place(shard("pack"), packed[i].first_byte, packed[i].bytes);
    check_packed(place, packed[i].hash);
    const Clip there = read_clip(place);
    const Clip here = read_clip(clips[i].place, clips[i].first_sample, clips[i].samples);
    EXPECT_EQ(there.sample_rate, here.sample_rate);
    EXPECT_EQ(there.samples, here.samples);
  }
}

TEST_F(PackFolder, the_shard_is_a_plain_tar_of_an_index_and_two_files_a_clip) {
  const std::vector<PackedClip> packed = pack("pack");
  std::vector<TarMember> members;
  list_tar(shard("pack"), [&](const TarMember& member) { members.push_back(member); });
  ASSERT_EQ(members.size(), 1 + 2 * clips.size());
  EXPECT_EQ(members[0].name, "myxtts-index.jsonl");
  EXPECT_EQ(members[0].first_byte, 512U);
  const std::string whole = read(shard("pack"));
  for (size_t i = 0; i < clips.size(); ++i) {
    const TarMember &audio = members[1 + 2 * i], &text = members[2 + 2 * i];
    EXPECT_EQ(audio.name, clips[i].id + ".wav");
    EXPECT_EQ(audio.first_byte, packed[i].first_byte);
    EXPECT_EQ(audio.bytes, packed[i].bytes);
    EXPECT_EQ(text.name, clips[i].id + ".json");
    EXPECT_NE(whole.substr(text.first_byte, text.bytes).find("\"text\":\"text of "), std::string::npos);
  }
}

TEST_F(PackFolder, a_long_id_gets_the_same_place_in_the_index_and_in_the_tar) {
  add(std::string(150, 'x'), clips[0].place, 0, 500);
  const std::vector<PackedClip> packed = pack("pack");
  EXPECT_EQ(read_clip({shard("pack"), packed[4].first_byte, packed[4].bytes}).samples.size(), 500U);
}

TEST_F(PackFolder, packing_twice_or_on_more_threads_gives_the_same_bytes) {
  for (int i = 0; i < 150; ++i) add("more-" + std::to_string(i), clips[0].place, 0, 100 + static_cast<uint64_t>(i));
  PackOptions options;
  pack("one", options);
  pack("again", options);
  options.threads = 4;
  pack("four", options);
  EXPECT_EQ(read(shard("one")), read(shard("again")));
  EXPECT_EQ(read(shard("one")), read(shard("four")));
}

TEST_F(PackFolder, small_shards_hold_what_fits_and_no_clip_is_lost) {
  for (int i = 0; i < 40; ++i) add("more-" + std::to_string(i), clips[0].place, 0, 1500);
  PackOptions options;
  options.shard_bytes = 20'000;
  const PackReport report = pack_corpus(index(), folder / "pack", options);
  EXPECT_GT(report.shards.size(), 5U);
  uint64_t total = 0;
  size_t next = 0;
  for (const fs::path& path : report.shards) {
    EXPECT_LE(fs::file_size(path), options.shard_bytes);
    total += fs::file_size(path);
    for (const PackedClip& clip : read_pack_index(path)) EXPECT_EQ(clip.id, clips[next++].id);
  }
  EXPECT_EQ(next, clips.size());
  EXPECT_EQ(total, report.bytes);
  options.shard_bytes = 1;
  EXPECT_EQ(pack_corpus(index(), folder / "tiny", options).shards.size(), clips.size()) << "one clip a shard at least";
}

TEST_F(PackFolder, original_bytes_are_kept_as_they_are_from_files_and_from_tars) {
  PackOptions options;
  options.original = true;
  const std::vector<PackedClip> packed = pack("pack", options);
  const std::string whole = read(shard("pack"));
  for (size_t i = 0; i < clips.size(); ++i) {
    const std::string original = read(clips[i].place.path);
    EXPECT_EQ(whole.substr(packed[i].first_byte, packed[i].bytes), original);
    EXPECT_EQ(packed[i].hash, hash_text(original));
  }
  for (size_t i = 0; i < clips.size(); ++i) clips[i].place = {shard("pack"), packed[i].first_byte, packed[i].bytes};
  pack("again", options);
  EXPECT_EQ(read(shard("again")), whole) << "a pack of a pack is the same pack";
}

TEST_F(PackFolder, what_is_not_mono_16_bit_is_made_so_as_write_wav_does) {
  std::vector<float> samples(4000);
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = std::sin(static_cast<float>(i) * 0.05F);
  try {
    codec_write(folder / "wavs" / "5.flac", "flac", samples, 22050);
  } catch (const Error&) {
    GTEST_SKIP() << "built without libsndfile";
  }
  clips.clear();
  add("flac", folder / "wavs" / "5.flac", 10, 3000);
  const std::vector<PackedClip> packed = pack("pack");
  write_wav(folder / "expected.wav", read_clip(clips[0].place, 10, 3000).samples, 22050);
  EXPECT_EQ(read(shard("pack")).substr(packed[0].first_byte, packed[0].bytes), read(folder / "expected.wav"));
  PackOptions options;
  options.original = true;
  const PackedClip kept = pack("original", options).at(0);
  clips[0].place = {shard("original"), kept.first_byte, kept.bytes};
  pack("again", options);
  std::vector<std::string> names;
  list_tar(shard("again"), [&](const TarMember& member) { names.push_back(member.name); });
  EXPECT_EQ(names, (std::vector<std::string>{"myxtts-index.jsonl", "flac.flac", "flac.json"}));
}

TEST_F(PackFolder, a_flipped_byte_of_a_clip_is_noticed) {
  const PackedClip clip = pack("pack")[2];
  const ClipPlace place(shard("pack"), clip.first_byte, clip.bytes);
  std::string whole = read(shard("pack"));
  for (const uint64_t at : {clip.first_byte, clip.first_byte + clip.bytes - 1}) {
    std::string damaged = whole;
    damaged[at] ^= 4;
    write_file_atomically(shard("pack"), damaged);
    EXPECT_THROW(check_packed(place, clip.hash), Error);
  }
  write_file_atomically(shard("pack"), whole.substr(0, clip.first_byte + clip.bytes - 1));
  EXPECT_THROW(check_packed(place, clip.hash), Error);
  EXPECT_THROW(check_packed({shard("pack"), ~uint64_t{0} - 5, 100}, clip.hash), Error);
}

TEST_F(PackFolder, a_folder_with_shards_is_refused_and_a_failed_pack_leaves_none) {
  pack("pack");
  try {
    pack("pack");
    ADD_FAILURE() << "a second pack into the same folder";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_input);
    EXPECT_NE(std::string(error.what()).find("shard-00000.tar; remove them or pack into another folder"),
              std::string::npos);
  }
  PackOptions options;
  options.shard_bytes = 1;
  clips[3].samples += 10'000;
  EXPECT_THROW(pack("short", options), Error);
  EXPECT_TRUE(fs::is_empty(folder / "short"));
  clips[3].text = "\xFF";
  EXPECT_THROW(pack("short", options), Error);
  EXPECT_THROW(pack("index/below-a-file"), Error);
  clips.clear();
  EXPECT_THROW(pack("empty"), Error);
}

TEST_F(PackFolder, what_a_killed_pack_left_is_removed_and_a_running_one_is_in_nobodys_way) {
  fs::create_directories(folder / "pack" / ".packing" / "shard");
  {
    const FolderLock running("pack", folder / "pack");
    EXPECT_THROW(pack("pack"), Error);
    EXPECT_TRUE(fs::exists(folder / "pack" / ".packing"));
  }
  pack("pack");
  EXPECT_EQ(list_folder(folder / "pack"), std::vector<fs::path>{folder / "pack" / "shard-00000.tar"});
}

TEST_F(PackFolder, a_tar_without_an_index_has_no_packed_clips) {
  TarWriter writer(folder / "plain.tar");
  writer.add("a.wav", {});
  writer.finish();
  EXPECT_TRUE(read_pack_index(folder / "plain.tar").empty());
}

TEST_F(PackFolder, a_lying_index_is_named_with_its_line) {
  const auto reason_of = [&](const std::string& line) -> std::string {
    const std::string good =
        R"({"id":"a","speaker":"","text":"t","held_out":false,"first_byte":  0,"bytes":9,"xxh64":"0123456789abcdef"})";
    const std::string text = good + "\n" + line + "\n";
    TarWriter writer(folder / "a.tar");
    writer.add("myxtts-index.jsonl", std::as_bytes(std::span(text)));
    writer.finish();
    try {
      read_pack_index(folder / "a.tar");
      return "";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("a.tar has a damaged index, line 2 (at byte 6"), std::string::npos)
          << error.what();
      return error.what();
    }
  };
  const auto line = [](const std::string& numbers) {
    return R"({"id":"b","speaker":"","text":"t","held_out":false,)" + numbers + "}";
  };
  const std::string hash = R"("xxh64":"0123456789abcdef")";
  EXPECT_EQ(reason_of(line(R"("first_byte":0,"bytes":1,"new":[1],)" + hash)), "") << "keys to come are passed over";
  for (const std::string numbers :
       {R"("first_byte":2000,"bytes":99999,)", R"("first_byte":18446744073709551615,"bytes":2,)",
        R"("first_byte":2,"bytes":18446744073709551615,)", R"("first_byte":-1,"bytes":2,)",
        R"("first_byte":0.5,"bytes":2,)", R"("first_byte":0,"bytes":0,)", R"("first_byte":1e30,"bytes":2,)",
        R"("first_byte":"0","bytes":2,)", R"("bytes":2,)"}) {
    EXPECT_NE(reason_of(line(numbers + hash)), "") << numbers;
  }
  for (const std::string bad : {"0123456789abcdeg", "0123", "-123456789abcdef", ""}) {
    EXPECT_NE(reason_of(line(R"("first_byte":0,"bytes":1,"xxh64":")" + bad + "\"")), "") << bad;
  }
  for (const std::string& bad : {std::string(), std::string("[]"), std::string("7"), std::string("{\"id\":\"\xFF\"}"),
                                 std::string("{\"id\":1}"), std::string(100'000, '['), std::string(9, '\0')}) {
    EXPECT_NE(reason_of(bad), "") << bad.substr(0, 20);
  }
}

// Reads the index and every clip it names; an Error is the only complaint allowed.
void read_all(const fs::path& shard) {
  try {
    for (const PackedClip& clip : read_pack_index(shard)) {
      try {
        check_packed({shard, clip.first_byte, clip.bytes}, clip.hash);
        read_clip({shard, clip.first_byte, clip.bytes});
      } catch (const Error&) {
      }
    }
  } catch (const Error&) {
  }
}

TEST_F(PackFolder, cuts_and_flipped_bytes_are_survived) {
  pack("pack");
  const std::string whole = read(shard("pack"));
  const fs::path damaged = folder / "damaged.tar";
  for (size_t bytes = 0; bytes < whole.size(); bytes += 97) {
    write_file_atomically(damaged, whole.substr(0, bytes), Sync::no);
    read_all(damaged);
  }
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    std::string text = whole;
    for (int i = 0; i < 3; ++i) text[random.below(2048)] ^= static_cast<char>(1 + random.below(255));  // header, index
    write_file_atomically(damaged, text, Sync::no);
    read_all(damaged);
  }
}

}  // namespace
}  // namespace myxtts
