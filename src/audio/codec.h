// Compressed formats by libsndfile. Where it was not there at build time, `no_sndfile/` throws one clear sentence.
#pragma once

#include "audio/wav.h"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace myxtts {

struct AudioInfo {
  std::string format;  // "wav pcm_16", "flac", "mp3", "vorbis", "opus"
  int sample_rate = 0;
  int channels = 0;
  uint64_t frames = 0;  // samples per channel, by the header

  double seconds() const { return static_cast<double>(frames) / sample_rate; }
};

AudioInfo codec_info(const ByteSource& source);

// Frames [first, first + count) as mono; fewer when the clip ends before. Memory follows what is really decoded, not
// what the header claims.
std::vector<float> codec_read_mono(const ByteSource& source, uint64_t first, uint64_t count);

// Mono, `format` one of flac, mp3, ogg. The same samples give the same bytes.
void codec_write(const std::filesystem::path& path, const std::string& format, std::span<const float> samples,
                 int sample_rate);

}  // namespace myxtts
