// Reads whole files and writes them atomically: a reader sees the old content or the new, never a part. Any thread;
// every function throws Error with the path and the reason of the system.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace myxtts {

std::string read_text_file(const std::filesystem::path& path, uint64_t max_bytes);

// What a folder holds, sorted.
std::vector<std::filesystem::path> list_folder(const std::filesystem::path& folder);

// Writes a temporary file beside the target, syncs it and renames it. Sync::no is for many small files that can be
// recreated.
enum class Sync { yes, no };
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes, Sync sync = Sync::yes);
void write_file_atomically(const std::filesystem::path& path, std::string_view text, Sync sync = Sync::yes);

// Writes a large file incrementally to a temporary name. It appears at `finish`; destruction before that removes it.
class FileWriter {
 public:
  explicit FileWriter(std::filesystem::path path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  uint64_t position() const { return position_; }
  void write(std::span<const std::byte> bytes);
  void overwrite(uint64_t at, std::span<const std::byte> bytes);  // bytes that were written before
  void finish();                                                  // syncs, renames, and syncs the folder

 private:
  void flush();

  std::filesystem::path path_, temporary_;
  int descriptor_ = -1;
  uint64_t position_ = 0;
  std::vector<std::byte> pending_;
};

// Removes the temporary files that processes which were killed left in a folder. Those that are being written are
// locked, and stay.
void remove_leftovers(const std::filesystem::path& folder) noexcept;

// A read-only file descriptor with positioned reads. Owns the descriptor; one instance may be used by many threads.
class ReadOnlyFile {
 public:
  explicit ReadOnlyFile(const std::filesystem::path& path);
  ~ReadOnlyFile();
  ReadOnlyFile(const ReadOnlyFile&) = delete;
  ReadOnlyFile& operator=(const ReadOnlyFile&) = delete;

  uint64_t size_bytes() const { return size_bytes_; }
  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return descriptor_; }

  // Reads until `into` is full or the file ends; returns the bytes read.
  size_t read_at(uint64_t offset, std::span<std::byte> into) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  uint64_t size_bytes_ = 0;
};

}  // namespace myxtts
