// The corpus index. Its checksums keep damage out; here they are made right, as whoever means harm would.
#include "corpus/index.h"

#include "base/hash.h"
#include "fuzz.h"

#include <cstring>

using namespace myxtts;

namespace {

struct Section {
  uint64_t at, bytes;
};
// As the file has it; see docs/en/formats.md.
struct Header {
  char magic[8];
  uint32_t version, header_bytes;
  uint64_t file_bytes, clips, stamp[2];
  Section strings, lines, lengths, labels, summary;
  uint64_t lengths_hash, labels_hash, summary_hash, header_hash;
};
constexpr uint64_t line_bytes = 64;

std::string made_right(fuzz::Input input) {
  std::string file(fuzz::text_of(input));
  if (file.size() < sizeof(Header)) return file;
  Header header;
  std::memcpy(&header, file.data(), sizeof header);
  header.header_bytes = sizeof header, header.file_bytes = file.size();
  const auto inside = [&](const Section& one) { return one.at <= file.size() && one.bytes <= file.size() - one.at; };
  const auto hash_of = [&](const Section& one) {
    return inside(one) ? hash_bytes(file.data() + one.at, one.bytes) : 0;
  };
  header.lengths_hash = hash_of(header.lengths), header.labels_hash = hash_of(header.labels);
  header.summary_hash = hash_of(header.summary);
  if (inside(header.lines) && inside(header.strings)) {
    for (uint64_t i = 0; i < std::min<uint64_t>(header.clips, header.lines.bytes / line_bytes); ++i) {
      char* const line = file.data() + header.lines.at + i * line_bytes;
      uint64_t at = 0;
      uint32_t bytes = 0, hash = 0;
      std::memcpy(&at, line, 8), std::memcpy(&bytes, line + 56, 4), std::memcpy(line + 60, &hash, 4);
      if (at > header.strings.bytes || bytes > header.strings.bytes - at) continue;
      const std::string_view strings(file.data() + header.strings.at + at, bytes);
      hash = static_cast<uint32_t>(hash_text(strings, hash_bytes(line, line_bytes)));
      std::memcpy(line + 60, &hash, 4);
    }
  }
  header.header_hash = hash_bytes(&header, offsetof(Header, header_hash));
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

}  // namespace

FUZZ_TARGET(input) {
  const CorpusIndex index(fuzz::file_of(made_right(input)));
  for (size_t i = 0; i < index.size(); ++i) {
    fuzz::run([&] {
      const CorpusClip clip = index.clip(i);
      fuzz::expect(clip.seconds() > 0 && clip.length.mel_frames > 0);
      index.loaded_bytes(i);
    });
  }
}
