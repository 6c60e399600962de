// Parses the WAV container without reading the samples. Strict about lengths, lenient about variants:
// extensible, RF64 and BW64, chunks in any order, missing padding, and the 0 or 0xFFFFFFFF that streaming writers
// leave.
#pragma once

#include "audio/pcm.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace myxtts {

// Limits of a clip in any format. The samples are those of all channels together: 23 minutes of mono at 48 kHz.
constexpr int min_sample_rate = 1000, max_sample_rate = 768'000;
constexpr uint64_t max_clip_samples = uint64_t{1} << 26;

constexpr bool is_sample_rate(int64_t hz) { return hz >= min_sample_rate && hz <= max_sample_rate; }

struct WavLayout {
  SampleFormat format = SampleFormat::pcm_16;
  int channels = 1;
  int sample_rate = 0;
  uint64_t data_offset_bytes = 0;
  uint64_t frames = 0;  // samples per channel

  int frame_bytes() const { return bytes_per_sample(format) * channels; }
};

// Random access to the bytes of a clip: a file, a tar member or a packed corpus.
struct ByteSource {
  std::string name;  // for error messages
  uint64_t size_bytes = 0;
  std::function<size_t(uint64_t offset, std::span<std::byte> into)> read_at;
};

bool looks_like_wav(const ByteSource& source);

// Throws Error with name, byte offset and reason. Reads a few dozen bytes per chunk and allocates nothing.
WavLayout parse_wav(const ByteSource& source);

// Mono PCM16, as in a file: little-endian. Clips samples to [-1, 1]; 16-bit input round-trips exactly.
void append_pcm_16(std::vector<std::byte>& out, std::span<const float> samples);

// The header of a mono PCM16 file. A stream whose length is not known yet says 0xFFFFFFFF.
constexpr uint64_t wav_header_bytes = 44;
constexpr uint32_t unknown_wav_bytes = 0xFFFFFFFF;
std::vector<std::byte> make_wav_header(uint32_t data_bytes, int sample_rate);

std::vector<std::byte> make_wav(std::span<const float> samples, int sample_rate);
void write_wav(const std::filesystem::path& path, std::span<const float> samples, int sample_rate);

}  // namespace myxtts
