// FLAC, Ogg (Vorbis, Opus, FLAC) and MP3 through libsndfile; `no_sndfile/` throws Error in builds without it. Any
// thread.
#pragma once

#include "audio/wav.h"

#include <filesystem>
#include <functional>
#include <span>
#include <string>

namespace myxtts {

struct AudioInfo {
  std::string format;  // "wav pcm_16", "flac", "mp3", "vorbis", "opus"
  int sample_rate = 0;
  int channels = 0;
  uint64_t frames = 0;  // samples per channel, from the header

  double seconds() const { return static_cast<double>(frames) / sample_rate; }
};

AudioInfo codec_info(const ByteSource& source);

// Gets the samples block by block; false: no more are needed.
using TakeSamples = std::function<bool(std::span<const float>)>;

// Frames [first, first + count) as mono, or fewer if the clip ends earlier.
AudioInfo codec_read_mono(const ByteSource& source, uint64_t first, uint64_t count, const TakeSamples& take);

// Writes a mono file; `format` is flac, mp3 or ogg. Deterministic.
void codec_write(const std::filesystem::path& path, const std::string& format, std::span<const float> samples,
                 int sample_rate);

}  // namespace myxtts
