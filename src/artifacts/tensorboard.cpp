#include "artifacts/tensorboard.h"

#include "artifacts/crc.h"
#include "base/error.h"

#include <chrono>
#include <utility>

#include <unistd.h>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

// Fields of a protocol buffer. A tag is the field number and the wire type: 0 varint, 1 eight bytes, 2
// length-delimited, 5 four bytes.
std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  return out + static_cast<char>(value);
}

template <typename Number>
std::string raw(Number number) {
  return std::string(reinterpret_cast<const char*>(&number), sizeof number);
}

std::string integer_field(int number, int64_t value) {
  return varint(static_cast<uint64_t>(number) << 3) + varint(static_cast<uint64_t>(value));
}
std::string double_field(int number, double value) {
  return varint(static_cast<uint64_t>(number) << 3 | 1) + raw(value);
}
std::string float_field(int number, float value) { return varint(static_cast<uint64_t>(number) << 3 | 5) + raw(value); }
std::string bytes_field(int number, std::string_view bytes) {
  return varint(static_cast<uint64_t>(number) << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

// TFRecord masks its CRC, so that a record may contain records.
uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8U;
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

}  // namespace

EventWriter::EventWriter(const fs::path& folder, int64_t resume_step) {
  std::error_code problem;
  fs::create_directories(folder, problem);
  const auto now = static_cast<int64_t>(seconds_since_1970());
  // The last number distinguishes writers of one process within one second.
  for (int number = 0; !file_; ++number) {
    file_ = AppendFile::create(folder /
                               fmt::format("events.out.tfevents.{}.{}.{}.{}", now, host_name(), ::getpid(), number));
  }
  write_event(0, bytes_field(3, "brain.Event:2"));
  if (resume_step > 0) write_event(resume_step, bytes_field(7, integer_field(1, 1)));
}

void EventWriter::scalar(std::string_view tag, int64_t step, float value) {
  write_value(tag, step, float_field(2, value));
}

void EventWriter::image(std::string_view tag, int64_t step, std::string_view png, int width, int height) {
  constexpr int rgb = 3;
  write_value(
      tag, step,
      bytes_field(4, integer_field(1, height) + integer_field(2, width) + integer_field(3, rgb) + bytes_field(4, png)));
}

void EventWriter::audio(std::string_view tag, int64_t step, std::span<const std::byte> wav, int sample_rate,
                        int64_t length_frames) {
  const std::string_view bytes(reinterpret_cast<const char*>(wav.data()), wav.size());
  write_value(
      tag, step,
      bytes_field(6, float_field(1, static_cast<float>(sample_rate)) + integer_field(2, 1) +
                         integer_field(3, length_frames) + bytes_field(4, bytes) + bytes_field(5, "audio/wav")));
}

void EventWriter::text(std::string_view tag, int64_t step, std::string_view markdown) {
  constexpr int strings = 7;
  const std::string shape = bytes_field(2, integer_field(1, 1));  // shape [1]
  const std::string tensor = integer_field(1, strings) + bytes_field(2, shape) + bytes_field(8, markdown);
  const std::string metadata = bytes_field(1, bytes_field(1, "text"));  // plugin name
  write_value(tag, step, bytes_field(8, tensor) + bytes_field(9, metadata));
}

EventWriter::~EventWriter() {
  try {
    flush();
  } catch (const Error&) {  // nobody is left to hear of it
  }
}

void EventWriter::flush() { file_->append(std::exchange(pending_, {})); }

void EventWriter::write_value(std::string_view tag, int64_t step, const std::string& fields) {
  write_event(step, bytes_field(5, bytes_field(1, bytes_field(1, tag) + fields)));
}

void EventWriter::write_event(int64_t step, const std::string& fields) {
  const std::string event = double_field(1, seconds_since_1970()) + integer_field(2, step) + fields;
  const std::string length = raw(static_cast<uint64_t>(event.size()));
  pending_ += length + raw(masked_crc(length)) + event + raw(masked_crc(event));
}

}  // namespace myxtts
