// TensorBoard event files: hand-written protocol buffers in TFRecord framing. Supports scalars, images, audio and text.
#pragma once

#include "base/append_file.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace myxtts {

// Writes one new file into a folder, which it creates if needed. Buffers events until `flush` or destruction. One
// thread at a time. Throws Error with the reason of the system.
class EventWriter {
 public:
  // A resumed run passes the step of its checkpoint; TensorBoard then discards later events of earlier files.
  explicit EventWriter(const std::filesystem::path& folder, int64_t resume_step = 0);
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  void scalar(std::string_view tag, int64_t step, float value);
  void image(std::string_view tag, int64_t step, std::string_view png, int width, int height);
  void audio(std::string_view tag, int64_t step, std::span<const std::byte> wav, int sample_rate,
             int64_t length_frames);  // mono
  void text(std::string_view tag, int64_t step, std::string_view markdown);

  // Whole events: one that a full disk has no room for leaves nothing behind.
  void flush();
  const std::filesystem::path& path() const { return file_->path(); }

 private:
  void write_event(int64_t step, const std::string& fields);
  void write_value(std::string_view tag, int64_t step, const std::string& fields);

  std::unique_ptr<AppendFile> file_;
  std::string pending_;
};

}  // namespace myxtts
