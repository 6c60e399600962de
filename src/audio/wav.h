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

// Mono PCM16 file. Clips samples to [-1, 1]; 16-bit input round-trips exactly.
constexpr uint64_t wav_header_bytes = 44;
std::vector<std::byte> make_wav(std::span<const float> samples, int sample_rate);
void write_wav(const std::filesystem::path& path, std::span<const float> samples, int sample_rate);

}  // namespace myxtts
