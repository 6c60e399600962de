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

}  // namespace
}  // namespace myxtts
