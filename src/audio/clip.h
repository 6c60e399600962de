// A clip of any supported format: what its header says, and its samples as mono floats. Any thread.
#pragma once

#include "audio/codec.h"

#include <filesystem>
#include <limits>
#include <vector>

namespace myxtts {

constexpr uint64_t whole_clip = std::numeric_limits<uint64_t>::max();

// Where a clip's bytes lie: a file of its own, or a part of one, such as a member of a tar.
struct ClipPlace {
  std::filesystem::path path;
  uint64_t first_byte = 0;
  uint64_t bytes = 0;  // 0: all of the file, whatever its size
  bool part = false;   // of a larger file; otherwise the file must have just these bytes

  ClipPlace() = default;
  ClipPlace(std::filesystem::path file) : path(std::move(file)) {}  // NOLINT(google-explicit-constructor)
  ClipPlace(std::filesystem::path file, uint64_t first, uint64_t size)
      : path(std::move(file)), first_byte(first), bytes(size), part(true) {}

  std::string name() const;  // for messages
};

// From the header alone, nothing decoded. Throws Error with path, byte offset and reason.
AudioInfo read_clip_info(const ClipPlace& place);

struct Clip {
  int sample_rate = 0;
  std::vector<float> samples;
};

// Samples [first, first + count) at the clip's own rate; fewer when it ends before. Only what is asked for is read,
// where the format allows.
Clip read_clip(const ClipPlace& place, uint64_t first = 0, uint64_t count = whole_clip);

// All of the clip's bytes as they lie there; `into` has just their size.
void read_bytes(const ClipPlace& place, std::span<std::byte> into);

// A clip's samples as they lie in the file, for a GPU that decodes them itself; what is not WAV comes as mono float_32.
struct RawClip {
  WavLayout layout;  // data_offset_bytes is 0
  std::vector<std::byte> bytes;
};
RawClip read_raw_clip(const ClipPlace& place);

}  // namespace myxtts
