// The index at the beginning of a packed shard: the input is its lines, behind a sound tar header.
#include "corpus/pack.h"
#include "corpus/tar.h"
#include "fuzz.h"

using namespace myxtts;

FUZZ_TARGET(input) {
  const std::filesystem::path path = fuzz::folder() / "shard.tar";
  TarWriter tar(path);
  tar.add("myxtts-index.jsonl", fuzz::bytes_of(input));
  tar.add("a.wav", std::vector<std::byte>(1000));
  tar.finish();
  const uint64_t size = std::filesystem::file_size(path);
  for (const PackedClip& clip : read_pack_index(path)) {
    fuzz::expect(clip.first_byte <= size && clip.bytes <= size - clip.first_byte);
  }
}
