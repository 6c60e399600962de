// TensorBoard's event files: records of hand-written protocol buffers in TFRecord's framing. Only what TensorBoard
// shows as scalars, images, audio and text.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace myxtts {

// Writes one new file into a folder, which it makes if need be. Events are buffered until `flush` or the end of the
// object. One thread at a time. Throws Error with the system's reason.
class EventWriter {
 public:
  // A run that goes on from a checkpoint gives the step it goes on from: TensorBoard then forgets what an earlier file
  // of the folder has at that step and after it.
  explicit EventWriter(const std::filesystem::path& folder, int64_t continues_from_step = 0);

  void scalar(std::string_view tag, int64_t step, float value);
  void image(std::string_view tag, int64_t step, std::string_view png, int width, int height);
  void audio(std::string_view tag, int64_t step, std::span<const std::byte> wav, int sample_rate,
             int64_t length_frames);  // one channel
  void text(std::string_view tag, int64_t step, std::string_view markdown);

  void flush();
  const std::filesystem::path& path() const { return path_; }

 private:
  void write_event(int64_t step, const std::string& fields);
  void write_value(std::string_view tag, int64_t step, const std::string& fields);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace myxtts
