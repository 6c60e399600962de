// A packed corpus: a copy of a checked corpus as a few tar shards that any tool can list and WebDataset can read. Each
// begins with an index of its clips, so that it can be opened without listing it, mapped, and copied straight to a GPU.
// The layout is in docs/en/formats.md.
#pragma once

#include "audio/clip.h"
#include "corpus/corpus.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace myxtts {

struct PackOptions {
  bool original = false;                     // each clip's own bytes; otherwise what is used of it, as mono PCM16 WAV
  uint64_t shard_bytes = uint64_t{1} << 30;  // at most, but for a clip that is larger by itself
  size_t threads = 1;                        // that decode
  std::function<void(uint64_t done, uint64_t total)> progress = {};  // clips; from the calling thread
};

struct PackReport {
  uint64_t clips = 0;
  uint64_t bytes = 0;
  std::vector<std::filesystem::path> shards;
};

// Writes shard-00000.tar and so on into `folder`, which must have none. They appear when all are whole. The same corpus
// and options give the same bytes.
PackReport pack_corpus(const Corpus& corpus, const std::filesystem::path& folder, const PackOptions& options);

struct PackedClip {
  std::string id;
  std::string speaker;
  std::string language;
  std::string text;
  bool held_out = false;
  uint64_t first_byte = 0;  // of the shard
  uint64_t bytes = 0;
  uint64_t hash = 0;  // XXH64 of them
};

// Empty when the tar does not begin with an index of ours. Throws Error when the index is damaged or the file too short
// for its clips. The clips' own bytes are not looked at.
std::vector<PackedClip> read_pack_index(const std::filesystem::path& shard);

// Throws Error when the bytes there do not have this hash.
void check_packed(const ClipPlace& place, uint64_t hash);

}  // namespace myxtts
