// A file that grows by whole pieces: lines of a log, records of an event file. A piece is there in full or not at all,
// also after a full disk or a kill in the middle of a write. One thread at a time; throws Error with the path and the
// reason of the system.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

namespace myxtts {

class AppendFile {
 public:
  // Extends a file of lines, and creates it if there is none. A last line without an end, left by a kill, is removed.
  // A symlink is not followed: what it points to may be anyone's.
  static AppendFile lines(const std::filesystem::path& path);
  // A new file; null if there is one of that name.
  static std::unique_ptr<AppendFile> create(const std::filesystem::path& path);

  AppendFile(AppendFile&& other) noexcept;
  ~AppendFile();
  AppendFile& operator=(AppendFile&&) = delete;

  // If it cannot be written, what came of it is removed again.
  void append(std::string_view piece);

  const std::filesystem::path& path() const { return path_; }

 private:
  AppendFile(std::filesystem::path path, int descriptor, uint64_t size);

  std::filesystem::path path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;  // of the pieces that are whole
};

}  // namespace myxtts
