#include "audio/codec.h"

#include "audio/clip.h"
#include "base/error.h"
#include "base/random.h"

#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

TEST(Codec, a_part_has_the_samples_of_the_whole) {
  Random random(3);
  std::vector<float> samples;
  for (int i = 0; i < 60'000; ++i) {
    samples.push_back(static_cast<float>(0.4 * std::sin(0.03 * i) * std::sin(0.0007 * i) + 0.05 * random.normal()));
  }
  for (const char* format : {"flac", "mp3", "ogg"}) {
    const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / ("part." + std::string(format));
    try {
      codec_write(path, format, samples, 24'000);
    } catch (const Error& error) {
      GTEST_SKIP() << error.what() << ": compressed formats are NOT tested";
    }
    const Clip whole = read_clip(path);
    for (const uint64_t first : {1, 700, 4096, 30'000, 55'555}) {
      const Clip part = read_clip(path, first, 4'000);
      ASSERT_EQ(part.samples.size(), 4'000U) << format << " from " << first;
      const auto begin = whole.samples.begin() + static_cast<int64_t>(first);
      EXPECT_TRUE(std::equal(part.samples.begin(), part.samples.end(), begin)) << format << " from " << first;
    }
    EXPECT_TRUE(read_clip(path, whole.samples.size() - 10, 100).samples.size() <= 10U);
  }
}

std::string error_of(const std::string& content) {
  try {
    read_clip(memory_source("clip", std::as_bytes(std::span(content))));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// libsndfile opens two dozen containers that nobody keeps speech in, whatever the name of the file.
TEST(Codec, other_containers_are_refused_also_behind_a_tag) {
  const std::string au =
      std::string(".snd\0\0\0\x18\xFF\xFF\xFF\xFF\0\0\0\x03\0\0\x1F\x40\0\0\0\x01", 24) + std::string(4000, 'x');
  const std::string tag("ID3\x04\0\0\0\0\0\0", 10);
  for (const std::string& content : {au, tag + au, tag + tag + tag + tag + au, std::string("a text"), tag}) {
    EXPECT_NE(error_of(content).find("not WAV, FLAC, Ogg or MP3"), std::string::npos) << error_of(content);
  }
}

TEST(Codec, a_block_that_is_not_wanted_ends_the_reading) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "blocks.flac";
  try {
    codec_write(path, "flac", std::vector<float>(20'000, 0.5F), 24'000);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  size_t blocks = 0;
  EXPECT_EQ(read_samples(path, 0, whole_clip, [&](std::span<const float>) { return ++blocks < 2; }), 24'000);
  EXPECT_EQ(blocks, 2U);
}

}  // namespace
}  // namespace myxtts
