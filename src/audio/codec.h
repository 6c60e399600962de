// Compressed formats through libsndfile; `no_sndfile/` throws Error in builds without it. Any thread.
#pragma once

#include "audio/wav.h"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace myxtts {

// Of one clip: a small file can claim, and with some formats hold, more than fits into memory.
constexpr uint64_t max_decoded_samples = uint64_t{1} << 29;

struct AudioInfo {
  std::string format;  // "wav pcm_16", "flac", "mp3", "vorbis", "opus"
  int sample_rate = 0;
  int channels = 0;
  uint64_t frames = 0;  // samples per channel, from the header

  double seconds() const { return static_cast<double>(frames) / sample_rate; }
};

AudioInfo codec_info(const ByteSource& source);

// Frames [first, first + count) as mono, or fewer if the clip ends earlier. Allocates for decoded samples, not for what
// the header claims.
std::vector<float> codec_read_mono(const ByteSource& source, uint64_t first, uint64_t count);

// Writes a mono file; `format` is flac, mp3 or ogg. Deterministic.
void codec_write(const std::filesystem::path& path, const std::string& format, std::span<const float> samples,
                 int sample_rate);

}  // namespace myxtts
