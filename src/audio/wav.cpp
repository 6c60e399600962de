#include "audio/wav.h"

#include "base/error.h"
#include "base/files.h"

#include <cmath>
#include <cstring>
#include <optional>

namespace myxtts {
namespace {

constexpr uint32_t streaming_size = 0xFFFFFFFF;
constexpr int max_channels = 1024;
constexpr int max_chunks = 4096;  // real files have a few; each costs reads

enum : uint16_t { tag_pcm = 1, tag_float = 3, tag_a_law = 6, tag_mu_law = 7, tag_extensible = 0xFFFE };

uint32_t four_cc(const char (&name)[5]) {
  uint32_t code;
  std::memcpy(&code, name, 4);
  return code;
}

class Parser {
 public:
  explicit Parser(const ByteSource& source) : source_(source) {}

  WavLayout parse() {
    const uint32_t riff = word32(0);
    if (riff != four_cc("RIFF") && riff != four_cc("RF64") && riff != four_cc("BW64")) corrupt(0, "is not a WAV file");
    if (word32(8) != four_cc("WAVE")) corrupt(8, "is a RIFF file but not WAVE");
    uint64_t at = 12;
    for (int chunks = 0; !data_found_; ++chunks) {
      if (chunks == max_chunks) corrupt(at, fmt::format("has more than {} chunks before its samples", max_chunks));
      at = chunk(at);
    }
    if (!format_found_) corrupt(layout_.data_offset_bytes, "has samples but no format before them");
    layout_.frames = data_bytes_ / static_cast<uint64_t>(layout_.frame_bytes());
    const uint64_t most = max_clip_samples / static_cast<uint64_t>(layout_.channels);
    if (layout_.frames > most) {
      corrupt(layout_.data_offset_bytes, fmt::format("has {} samples in each of {} channels; at most {} are read",
                                                     layout_.frames, layout_.channels, most));
    }
    return layout_;
  }

 private:
  // Handles the chunk whose header is at `at`; returns where the next one begins.
  uint64_t chunk(uint64_t at) {
    if (at + 8 > source_.size_bytes) {
      corrupt(at, format_found_ ? "ends before any samples" : "ends before its format is given");
    }
    const uint32_t name = word32(at);
    const uint32_t size = word32(at + 4);
    const uint64_t body = at + 8;
    if (name == four_cc("data")) {
      take_data(body, size);
      return body;
    }
    if (body + size > source_.size_bytes) {
      corrupt(at + 4,
              fmt::format("has a chunk that claims {} bytes where {} are left", size, source_.size_bytes - body));
    }
    if (name == four_cc("fmt ")) take_format(body, size);
    if (name == four_cc("ds64") && size >= 24) long_data_bytes_ = word64(body + 8);
    const uint64_t end = body + size;
    return size % 2 == 1 && padded(end) ? end + 1 : end;
  }

  // Chunks of odd length are followed by a pad byte, which some writers leave out.
  bool padded(uint64_t end) { return !starts_chunk(end) || starts_chunk(end + 1); }

  bool starts_chunk(uint64_t at) {
    if (at + 8 > source_.size_bytes) return false;
    const uint32_t name = word32(at);
    for (int i = 0; i < 4; ++i) {
      const auto letter = static_cast<unsigned char>(name >> (8 * i));
      if (letter < 0x20 || letter > 0x7E) return false;
    }
    return true;
  }

  void take_format(uint64_t at, uint32_t size) {
    if (size < 16) corrupt(at - 4, fmt::format("has a format chunk of {} bytes; 16 is the least", size));
    uint16_t tag = word16(at);
    const int channels = word16(at + 2);
    const uint32_t rate = word32(at + 4);
    const int block_bytes = word16(at + 12);
    const int bits = word16(at + 14);
    if (tag == tag_extensible) {
      if (size < 40) corrupt(at - 4, "has an extensible format chunk that is too short");
      tag = word16(at + 24);
    }
    if (channels < 1 || channels > max_channels) corrupt(at + 2, fmt::format("has {} channels", channels));
    if (!is_sample_rate(rate)) corrupt(at + 4, fmt::format("has a sample rate of {} Hz", rate));
    const std::optional<SampleFormat> format = sample_format(tag, (bits + 7) / 8);
    if (!format)
      corrupt(at, fmt::format("has samples of {} bits with format tag {}, which is not supported", bits, tag));
    layout_.format = *format;
    layout_.channels = channels;
    layout_.sample_rate = static_cast<int>(rate);
    if (block_bytes != layout_.frame_bytes()) {
      corrupt(at + 12,
              fmt::format("says {} bytes a frame where its format needs {}", block_bytes, layout_.frame_bytes()));
    }
    format_found_ = true;
  }

  static std::optional<SampleFormat> sample_format(uint16_t tag, int bytes) {
    if (tag == tag_a_law && bytes == 1) return SampleFormat::a_law;
    if (tag == tag_mu_law && bytes == 1) return SampleFormat::mu_law;
    if (tag == tag_float && bytes == 4) return SampleFormat::float_32;
    if (tag == tag_float && bytes == 8) return SampleFormat::float_64;
    if (tag != tag_pcm || bytes < 1 || bytes > 4) return std::nullopt;
    static constexpr SampleFormat by_bytes[] = {SampleFormat::pcm_u8, SampleFormat::pcm_16, SampleFormat::pcm_24,
                                                SampleFormat::pcm_32};
    return by_bytes[bytes - 1];
  }

  void take_data(uint64_t body, uint32_t size) {
    const uint64_t left = source_.size_bytes - body;
    const bool streamed = (size == 0 && !only_chunks_follow(body)) || size == streaming_size;
    data_bytes_ = size == streaming_size && long_data_bytes_ ? *long_data_bytes_ : streamed ? left : size;
    if (data_bytes_ > left) {
      corrupt(body - 4,
              fmt::format("claims {} bytes of samples where {} are left: it is cut short", data_bytes_, left));
    }
    layout_.data_offset_bytes = body;
    data_found_ = true;
  }

  // Size 0 means an empty clip if further chunks follow, otherwise a streamed one.
  bool only_chunks_follow(uint64_t at) {
    for (int chunks = 0; chunks < max_chunks && starts_chunk(at); ++chunks) {
      const uint64_t end = at + 8 + word32(at + 4);
      at = end + end % 2;
    }
    return at >= source_.size_bytes;
  }

  template <typename Word>
  Word word(uint64_t at) {
    Word value{};
    if (source_.read_at(at, std::as_writable_bytes(std::span(&value, 1))) != sizeof value)
      corrupt(at, "ends in its header");
    return value;
  }
  uint16_t word16(uint64_t at) { return word<uint16_t>(at); }
  uint32_t word32(uint64_t at) { return word<uint32_t>(at); }
  uint64_t word64(uint64_t at) { return word<uint64_t>(at); }

  [[noreturn]] void corrupt(uint64_t at, std::string_view reason) const {
    fail_as(ErrorCode::unreadable, "audio", "{} {} (at byte {})", source_.name, reason, at_byte(at));
  }

  const ByteSource& source_;
  WavLayout layout_;
  uint64_t data_bytes_ = 0;
  std::optional<uint64_t> long_data_bytes_;
  bool format_found_ = false;
  bool data_found_ = false;
};

void append(std::vector<std::byte>& out, const void* from, size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(from);
  out.insert(out.end(), begin, begin + bytes);
}

}  // namespace

bool looks_like_wav(const ByteSource& source) {
  uint32_t words[3] = {};
  if (source.read_at(0, std::as_writable_bytes(std::span(words))) != sizeof words) return false;
  const bool riff = words[0] == four_cc("RIFF") || words[0] == four_cc("RF64") || words[0] == four_cc("BW64");
  return riff && words[2] == four_cc("WAVE");
}

WavLayout parse_wav(const ByteSource& source) { return Parser(source).parse(); }

void append_pcm_16(std::vector<std::byte>& out, std::span<const float> samples) {
  for (const float sample : samples) {
    const auto value = static_cast<int16_t>(std::clamp(std::lround(sample * 32768.0F), -32768L, 32767L));
    append(out, &value, 2);
  }
}

std::vector<std::byte> make_wav_header(uint32_t data_bytes, int sample_rate) {
  const uint32_t riff_bytes = data_bytes == unknown_wav_bytes ? unknown_wav_bytes : 36 + data_bytes;
  const uint32_t format_bytes = 16;
  const uint16_t format[] = {tag_pcm, 1};
  const uint32_t rates[] = {static_cast<uint32_t>(sample_rate), static_cast<uint32_t>(sample_rate) * 2};
  const uint16_t block[] = {2, 16};
  std::vector<std::byte> out;
  out.reserve(wav_header_bytes);
  append(out, "RIFF", 4), append(out, &riff_bytes, 4), append(out, "WAVEfmt ", 8), append(out, &format_bytes, 4);
  append(out, format, 4), append(out, rates, 8), append(out, block, 4), append(out, "data", 4);
  append(out, &data_bytes, 4);
  return out;
}

std::vector<std::byte> make_wav(std::span<const float> samples, int sample_rate) {
  std::vector<std::byte> out = make_wav_header(static_cast<uint32_t>(samples.size() * 2), sample_rate);
  out.reserve(wav_header_bytes + samples.size() * 2);
  append_pcm_16(out, samples);
  return out;
}

void write_wav(const std::filesystem::path& path, std::span<const float> samples, int sample_rate) {
  write_file_atomically(path, make_wav(samples, sample_rate), Sync::no);
}

}  // namespace myxtts
