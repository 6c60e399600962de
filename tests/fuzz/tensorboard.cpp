// TensorBoard events with tags and contents of any kind, read back record by record.
#include "artifacts/tensorboard.h"

#include "artifacts/crc.h"
#include "base/files.h"
#include "fuzz.h"

#include <cstring>

using namespace myxtts;

namespace {

uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8U;
}

// Length, its checksum, the event, its checksum: as long as there are any. Returns how many.
int read_events(std::string_view file) {
  int events = 0;
  for (; !file.empty(); ++events) {
    uint64_t length = 0;
    uint32_t length_crc = 0, event_crc = 0;
    fuzz::expect(file.size() >= 16);
    std::memcpy(&length, file.data(), 8), std::memcpy(&length_crc, file.data() + 8, 4);
    fuzz::expect(masked_crc(file.substr(0, 8)) == length_crc && length <= file.size() - 16);
    std::memcpy(&event_crc, file.data() + 12 + length, 4);
    fuzz::expect(masked_crc(file.substr(12, length)) == event_crc);
    file.remove_prefix(16 + length);
  }
  return events;
}

}  // namespace

FUZZ_TARGET(input) {
  int written = 1;  // the version
  std::filesystem::path path;
  {
    EventWriter writer(fuzz::folder() / "events");
    path = writer.path();
    while (!input.empty()) {
      const uint8_t kind = fuzz::take_byte(input);
      const size_t tag_bytes = std::min<size_t>(fuzz::take_byte(input), input.size());
      const std::string_view tag = fuzz::text_of(input.first(tag_bytes));
      const std::string_view rest = fuzz::text_of(input.first(std::min<size_t>(input.size(), kind)));
      if (kind % 4 == 0) writer.scalar(tag, kind, 1.0F / static_cast<float>(kind + 1));
      if (kind % 4 == 1) writer.image(tag, -kind, rest, kind, 1);
      if (kind % 4 == 2) writer.audio(tag, kind, std::as_bytes(std::span(rest)), kind, 1);
      if (kind % 4 == 3) writer.text(tag, kind, rest);
      if (kind % 8 == 5) writer.flush();
      input = input.subspan(tag_bytes), ++written;
    }
  }
  fuzz::expect(read_events(read_text_file(path, 1 << 28)) == written);
  std::filesystem::remove(path);
}
