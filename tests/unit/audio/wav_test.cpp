#include "audio/wav.h"

#include "audio/clip.h"
#include "base/error.h"
#include "base/files.h"
#include "base/random.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

void put(std::string& out, const std::string& text) { out += text; }
void put16(std::string& out, uint16_t value) { out.append(reinterpret_cast<const char*>(&value), 2); }
void put32(std::string& out, uint32_t value) { out.append(reinterpret_cast<const char*>(&value), 4); }

std::string format_chunk(uint16_t tag, uint16_t channels, uint32_t rate, uint16_t bits) {
  std::string out = "fmt ";
  const uint16_t block = static_cast<uint16_t>(channels * ((bits + 7) / 8));
  put32(out, 16), put16(out, tag), put16(out, channels), put32(out, rate), put32(out, rate * block);
  put16(out, block), put16(out, bits);
  return out;
}

std::string chunk(const std::string& name, const std::string& body, bool pad = true) {
  std::string out = name;
  put32(out, static_cast<uint32_t>(body.size())), put(out, body);
  if (pad && body.size() % 2 == 1) out += '\0';
  return out;
}

std::string riff(const std::string& chunks) {
  std::string out = "RIFF";
  put32(out, static_cast<uint32_t>(chunks.size() + 4));
  return out + "WAVE" + chunks;
}

ByteSource in_memory(const std::string& bytes) {
  return {"clip.wav", bytes.size(), [&bytes](uint64_t offset, std::span<std::byte> into) -> size_t {
            if (offset >= bytes.size()) return 0;
            const size_t count = std::min<size_t>(into.size(), bytes.size() - offset);
            std::memcpy(into.data(), bytes.data() + offset, count);
            return count;
          }};
}

WavLayout parse(const std::string& bytes) { return parse_wav(in_memory(bytes)); }

std::string error_of(const std::string& bytes) {
  try {
    parse(bytes);
    return "no error";
  } catch (const Error& error) {
    return error.what();
  }
}

const std::string samples(20, '\x11');
const std::string mono16 = format_chunk(1, 1, 22050, 16);

TEST(Wav, finds_the_samples_behind_any_chunks) {
  const WavLayout layout = parse(riff(chunk("JUNK", "abc") + mono16 + chunk("LIST", "12345") + chunk("data", samples)));
  EXPECT_EQ(layout.frames, 10U);
  EXPECT_EQ(layout.sample_rate, 22050);
  EXPECT_EQ(layout.data_offset_bytes, 12U + 12 + 24 + 14 + 8);
}

TEST(Wav, rates_and_lengths_beyond_any_clip_are_refused) {
  const auto error_of = [](const fs::path& path) -> std::string {
    try {
      read_clip(path);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  const fs::path path = fs::path(testing::TempDir()) / "limits.wav";
  for (const int rate : {1, 999, 768'001, 9'999'991}) {
    write_wav(path, std::vector<float>(100), rate);
    EXPECT_NE(error_of(path).find(fmt::format("sample rate of {} Hz", rate)), std::string::npos) << error_of(path);
  }
  const auto header = make_wav_header(unknown_wav_bytes, 48'000);
  write_file_atomically(path, header);
  fs::resize_file(path, header.size() + 2 * (max_clip_samples + 1));  // takes no room on the disk
  EXPECT_NE(error_of(path).find("at most 67108864 are read"), std::string::npos) << error_of(path);
  fs::remove(path);
}

TEST(Wav, missing_padding_after_an_odd_chunk_is_tolerated) {
  EXPECT_EQ(parse(riff(chunk("LIST", "abc", false) + mono16 + chunk("data", samples))).frames, 10U);
}

TEST(Wav, streaming_sizes_mean_until_the_end) {
  for (const uint32_t size : {0U, 0xFFFFFFFFU}) {
    std::string bytes = mono16 + "data";
    put32(bytes, size), put(bytes, samples);
    EXPECT_EQ(parse(riff(bytes)).frames, 10U) << size;
  }
  EXPECT_EQ(parse(riff(mono16 + chunk("data", "") + chunk("LIST", "info"))).frames, 0U);
}

TEST(Wav, rf64_takes_its_length_from_ds64) {
  std::string sizes;
  put32(sizes, 0), put32(sizes, 0), put32(sizes, 12), put32(sizes, 0), put32(sizes, 0), put32(sizes, 0),
      put32(sizes, 0);
  std::string bytes = "RF64";
  put32(bytes, 0xFFFFFFFF), put(bytes, "WAVE" + chunk("ds64", sizes) + mono16 + "data");
  put32(bytes, 0xFFFFFFFF), put(bytes, samples);
  EXPECT_EQ(parse(bytes).frames, 6U);
}

TEST(Wav, an_error_has_its_offset_as_a_number) {
  try {
    parse("RIFF");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.byte_offset(), 8U);
    EXPECT_EQ(error.code(), ErrorCode::unreadable);
  }
}

TEST(Wav, lies_and_nonsense_are_named_with_their_offset) {
  EXPECT_NE(error_of("RIFF").find("ends in its header (at byte 8)"), std::string::npos);
  EXPECT_NE(error_of(riff(format_chunk(1, 0, 22050, 16) + chunk("data", samples))).find("0 channels (at byte 22)"),
            std::string::npos);
  EXPECT_NE(error_of(riff(format_chunk(1, 1, 0, 16) + chunk("data", samples))).find("0 Hz (at byte 24)"),
            std::string::npos);
  EXPECT_NE(error_of(riff(format_chunk(2, 1, 22050, 4) + chunk("data", samples))).find("not supported"),
            std::string::npos);
  EXPECT_NE(error_of(riff(mono16)).find("ends before any samples"), std::string::npos);
  EXPECT_NE(error_of(riff(chunk("data", samples))).find("no format"), std::string::npos);
  std::string lying = mono16 + "data";
  put32(lying, 4'000'000'000U), put(lying, samples);
  EXPECT_NE(error_of(riff(lying)).find("claims 4000000000 bytes of samples where 20 are left"), std::string::npos);
  std::string large_chunk = "LIST";
  put32(large_chunk, 0xFFFFFFF0U);
  EXPECT_NE(error_of(riff(large_chunk + mono16)).find("(at byte 16)"), std::string::npos);
}

TEST(Wav, every_encoding_has_its_value) {
  const auto value = [](SampleFormat format, std::vector<uint8_t> bytes) { return sample_value(format, bytes.data()); };
  EXPECT_EQ(value(SampleFormat::pcm_u8, {0}), -1.0F);
  EXPECT_EQ(value(SampleFormat::pcm_u8, {128}), 0.0F);
  EXPECT_EQ(value(SampleFormat::pcm_16, {0x00, 0x80}), -1.0F);
  EXPECT_EQ(value(SampleFormat::pcm_24, {0x00, 0x00, 0x40}), 0.5F);
  EXPECT_EQ(value(SampleFormat::pcm_32, {0x00, 0x00, 0x00, 0xC0}), -0.5F);
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  uint8_t bytes[8];
  for (const float wild : {nan, infinity, -infinity}) {
    std::memcpy(bytes, &wild, 4);
    EXPECT_EQ(sample_value(SampleFormat::float_32, bytes), 0.0F);
  }
  const double large = 1e300;
  std::memcpy(bytes, &large, 8);
  EXPECT_EQ(sample_value(SampleFormat::float_64, bytes), 0.0F);
  EXPECT_EQ(value(SampleFormat::a_law, {0xD5}), 8 / 32768.0F);
  EXPECT_EQ(value(SampleFormat::mu_law, {0xFF}), 0.0F);
  EXPECT_EQ(value(SampleFormat::mu_law, {0x80}), 32124 / 32768.0F);
}

TEST(Wav, channels_are_averaged) {
  const float left = 0.5F, right = -0.25F;
  uint8_t frame[8];
  std::memcpy(frame, &left, 4), std::memcpy(frame + 4, &right, 4);
  EXPECT_EQ(mono_value(SampleFormat::float_32, 2, frame), 0.125F);
}

TEST(Wav, a_slice_is_the_slice_of_the_whole) {
  const fs::path path = fs::path(testing::TempDir()) / "myxtts_slice_test.wav";
  std::vector<float> wave(100000);
  Random random(5);
  for (float& x : wave) x = static_cast<float>(random.uniform(-1, 1));
  write_wav(path, wave, 16000);
  const Clip whole = read_clip(path), part = read_clip(path, 40000, 123), tail = read_clip(path, 99990);
  EXPECT_EQ(whole.samples.size(), wave.size());
  EXPECT_NEAR(whole.samples[77], wave[77], 1.0 / 32000);
  EXPECT_TRUE(std::equal(part.samples.begin(), part.samples.end(), whole.samples.begin() + 40000));
  EXPECT_EQ(part.samples.size(), 123U);
  EXPECT_EQ(tail.samples.size(), 10U);
  fs::remove(path);
}

TEST(Wav, ten_thousand_damaged_headers_end_in_a_layout_or_an_error) {
  const std::string good = riff(chunk("LIST", "abc") + mono16 + chunk("data", samples));
  Random random(11);
  int errors = 0;
  for (int i = 0; i < 10000; ++i) {
    std::string bytes = good.substr(0, random.below(4) == 0 ? random.below(good.size()) : good.size());
    for (uint64_t hits = 1 + random.below(6); hits > 0 && !bytes.empty(); --hits) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    }
    try {
      const WavLayout layout = parse(bytes);
      ASSERT_LE(layout.data_offset_bytes + layout.frames * static_cast<uint64_t>(layout.frame_bytes()), bytes.size());
    } catch (const Error&) {
      ++errors;
    }
  }
  EXPECT_GT(errors, 1000);
}

TEST(Wav, a_part_has_the_bytes_of_its_samples_alone) {
  const fs::path path = fs::path(testing::TempDir()) / "myxtts_wav_part_test.wav";
  std::string body;
  for (int i = 0; i < 1000; ++i) put16(body, static_cast<uint16_t>(i)), put16(body, static_cast<uint16_t>(3 * i));
  write_file_atomically(path, riff(format_chunk(1, 2, 16000, 16) + chunk("LIST", "abc") + chunk("data", body)));
  std::vector<std::byte> into(400, std::byte{0x55});
  const WavLayout layout = read_wav_part(path, 700, 90, into);
  EXPECT_EQ(layout.frames, 1000U);
  EXPECT_EQ(layout.data_offset_bytes, 0U);
  EXPECT_EQ(std::memcmp(into.data(), body.data() + 700 * 4, 90 * 4), 0);
  EXPECT_EQ(into[360], std::byte{0x55}) << "nothing behind the part is touched";
  EXPECT_THROW(read_wav_part(path, 700, 101, into), Error) << "there is no room for it";
  EXPECT_THROW(read_wav_part(path, 950, 51, into), Error) << "the clip ends before";
  EXPECT_THROW(read_wav_part(path, std::numeric_limits<uint64_t>::max(), 1, into), Error);
  fs::remove(path);
}

TEST(Wav, thousands_of_chunks_are_not_searched) {
  std::string chunks = format_chunk(1, 1, 16000, 16);
  for (int i = 0; i < 5000; ++i) chunks += chunk("junk", "");
  EXPECT_THROW(parse(riff(chunks + chunk("data", "abcd"))), Error);
}

TEST(Wav, a_stream_of_unknown_length_is_read_to_its_end) {
  const std::vector<float> written = {0.5F, -0.25F, 0.125F};
  std::vector<std::byte> bytes = make_wav_header(unknown_wav_bytes, 24000);
  EXPECT_EQ(bytes.size(), wav_header_bytes);
  append_pcm_16(bytes, written);
  const Clip clip = read_clip(memory_source("a stream", bytes));
  EXPECT_EQ(clip.sample_rate, 24000);
  EXPECT_EQ(clip.samples, written);
}

TEST(Wav, a_clip_in_memory_is_read_like_the_file) {
  const std::vector<float> written = {0.5F, -0.25F, 0.125F, 0};
  const std::vector<std::byte> bytes = make_wav(written, 16000);
  EXPECT_EQ(read_clip(memory_source("it", bytes)).samples, written);
  EXPECT_EQ(read_clip(memory_source("it", bytes), 1, 2).samples, std::vector<float>({-0.25F, 0.125F}));
  EXPECT_THROW(read_clip(memory_source("it", std::span(bytes).first(50))), Error);
  EXPECT_THROW(read_clip(memory_source("it", {})), Error);
}

}  // namespace
}  // namespace myxtts
