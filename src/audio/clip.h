// Reads clips of any supported format: header, or samples as mono floats. Any thread.
#pragma once

#include "audio/codec.h"
#include "base/root_folder.h"

#include <filesystem>
#include <limits>
#include <memory>
#include <vector>

namespace myxtts {

constexpr uint64_t whole_clip = std::numeric_limits<uint64_t>::max();

// Location of the bytes of a clip: a whole file, or a part of one, such as a tar member.
struct ClipPlace {
  std::filesystem::path path;
  uint64_t first_byte = 0;
  uint64_t bytes = 0;  // 0: the whole file
  bool part = false;   // part of a larger file; otherwise the file must have exactly these bytes
  std::shared_ptr<const RootFolder> root = {};  // the file must lie in it; null: it may lie anywhere

  ClipPlace() = default;
  ClipPlace(std::filesystem::path file) : path(std::move(file)) {}  // NOLINT(google-explicit-constructor)
  ClipPlace(std::filesystem::path file, uint64_t first, uint64_t size)
      : path(std::move(file)), first_byte(first), bytes(size), part(true) {}

  std::string name() const;  // for error messages
};

// Parses the header only. Throws Error with path, byte offset and reason.
AudioInfo read_clip_info(const ClipPlace& place);

struct Clip {
  int sample_rate = 0;
  std::vector<float> samples;
};

// Samples [first, first + count) at the source rate, or fewer if the clip ends earlier. Reads only that range if the
// format allows.
Clip read_clip(const ClipPlace& place, uint64_t first = 0, uint64_t count = whole_clip);

// The same samples block by block, until `take` returns false; returns the sample rate.
int read_samples(const ClipPlace& place, uint64_t first, uint64_t count, const TakeSamples& take);

// A clip that is in memory already; `bytes` must outlive the source. `name` is for error messages.
ByteSource memory_source(std::string name, std::span<const std::byte> bytes);
Clip read_clip(const ByteSource& source, uint64_t first = 0, uint64_t count = whole_clip);

// Reads all bytes of the clip; `into` must have their size.
void read_bytes(const ClipPlace& place, std::span<std::byte> into);

// Reads the bytes of samples [first, first + count) of a WAV to the front of `into`. The layout's offset is 0, its
// frames are those of the whole clip. Throws Error if the samples are not there or `into` is too small.
WavLayout read_wav_part(const ClipPlace& place, uint64_t first, uint64_t count, std::span<std::byte> into);

// Undecoded samples, for decoding on a GPU; formats other than WAV are decoded to mono float_32.
struct RawClip {
  WavLayout layout;  // data_offset_bytes is 0
  std::vector<std::byte> bytes;
};
RawClip read_raw_clip(const ClipPlace& place);

}  // namespace myxtts
