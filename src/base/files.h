// Reading whole files, and writing them so that a reader sees the old content or the new, never half of it.
// Any thread; every function throws Error with the path and the system's reason.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace myxtts {

std::string read_text_file(const std::filesystem::path& path, uint64_t max_bytes);

// Written beside the target under a temporary name, synced (unless many small files that can be made again would make
// that slow), then renamed over it.
enum class Sync { yes, no };
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes, Sync sync = Sync::yes);
void write_file_atomically(const std::filesystem::path& path, std::string_view text, Sync sync = Sync::yes);

// A read-only file descriptor with positioned reads. Owns the descriptor; one instance may be used by many threads.
class ReadOnlyFile {
 public:
  explicit ReadOnlyFile(const std::filesystem::path& path);
  ~ReadOnlyFile();
  ReadOnlyFile(const ReadOnlyFile&) = delete;
  ReadOnlyFile& operator=(const ReadOnlyFile&) = delete;

  uint64_t size_bytes() const { return size_bytes_; }
  const std::filesystem::path& path() const { return path_; }

  // Reads until `into` is full or the file ends; returns the bytes read.
  size_t read_at(uint64_t offset, std::span<std::byte> into) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  uint64_t size_bytes_ = 0;
};

}  // namespace myxtts
