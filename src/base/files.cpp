#include "base/files.h"

#include "base/error.h"
#include "base/work_clock.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

std::string system_reason() { return std::strerror(errno); }

// Closes on scope exit.
struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

void write_all(int descriptor, std::span<const std::byte> bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", "{}: {}", path.string(), system_reason());
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

// Syncs the folder, so that a rename is durable. Ignores file systems that cannot do it, since the file is complete.
void sync_folder(const fs::path& folder) {
  const Descriptor directory{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (directory.number >= 0) ::fsync(directory.number);
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

}  // namespace

std::string read_text_file(const fs::path& path, uint64_t max_bytes) {
  const ReadOnlyFile file(path);
  if (file.size_bytes() > max_bytes) {
    reject_input("read", "{} has {} bytes; at most {} are read here", path.string(), file.size_bytes(), max_bytes);
  }
  std::string text(file.size_bytes(), '\0');
  text.resize(file.read_at(0, std::as_writable_bytes(std::span(text))));
  return text;
}

void write_file_atomically(const fs::path& path, std::span<const std::byte> bytes, Sync sync) {
  const fs::path temporary = folder_of(path) / fmt::format(".{}.{}.tmp", path.filename().string(), ::getpid());
  try {
    const Descriptor file{::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
    if (file.number < 0) fail("write", "{}: {}", path.string(), system_reason());
    write_all(file.number, bytes, path);
    if (sync == Sync::yes && ::fsync(file.number) != 0) fail("write", "{}: {}", path.string(), system_reason());
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail("write", "{}: {}", path.string(), system_reason());
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  if (sync == Sync::yes) sync_folder(folder_of(path));
}

void write_file_atomically(const fs::path& path, std::string_view text, Sync sync) {
  write_file_atomically(path, std::as_bytes(std::span(text)), sync);
}

FileWriter::FileWriter(fs::path path) : path_(std::move(path)) {
  temporary_ = folder_of(path_) / fmt::format(".{}.{}.tmp", path_.filename().string(), ::getpid());
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail("write", "{}: {}", path_.string(), system_reason());
}

FileWriter::~FileWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void FileWriter::write(std::span<const std::byte> bytes) {
  constexpr size_t enough = 1 << 20;
  position_ += bytes.size();
  if (pending_.size() + bytes.size() >= enough) flush();
  if (bytes.size() >= enough) return write_all(descriptor_, bytes, path_);
  pending_.insert(pending_.end(), bytes.begin(), bytes.end());
}

void FileWriter::overwrite(uint64_t at, std::span<const std::byte> bytes) {
  flush();
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", "{}: {}", path_.string(), system_reason());
    bytes = bytes.subspan(static_cast<size_t>(written));
    at += static_cast<uint64_t>(written);
  }
}

void FileWriter::finish() {
  flush();
  if (::fsync(descriptor_) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail("write", "{}: {}", path_.string(), system_reason());
  }
  ::close(std::exchange(descriptor_, -1));
  sync_folder(folder_of(path_));
}

void FileWriter::flush() {
  write_all(descriptor_, pending_, path_);
  pending_.clear();
}

MappedFile::MappedFile(const fs::path& path) {
  const ReadOnlyFile file(path);
  if (file.size_bytes() == 0) return;
  void* const memory = ::mmap(nullptr, file.size_bytes(), PROT_READ, MAP_SHARED, file.descriptor(), 0);
  if (memory == MAP_FAILED) fail("read", "{}: {}", path.string(), system_reason());
  bytes_ = {static_cast<const std::byte*>(memory), file.size_bytes()};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

ReadOnlyFile::ReadOnlyFile(const fs::path& path) : path_(path) {
  const WorkTimer timer(&WorkClock::reading_ns);
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat status {};
  if (file.number < 0 || ::fstat(file.number, &status) != 0) {
    fail_as(ErrorCode::missing, "read", "{}: {}", path.string(), system_reason());
  }
  if (!S_ISREG(status.st_mode)) fail_as(ErrorCode::missing, "read", "{} is not a file", path.string());
  size_bytes_ = static_cast<uint64_t>(status.st_size);
  descriptor_ = std::exchange(file.number, -1);
}

ReadOnlyFile::~ReadOnlyFile() { ::close(descriptor_); }

size_t ReadOnlyFile::read_at(uint64_t offset, std::span<std::byte> into) const {
  const WorkTimer timer(&WorkClock::reading_ns);
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::pread(descriptor_, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      fail_as(ErrorCode::unreadable, "read", "{} at byte {}: {}", path_.string(), at_byte(offset + done),
              system_reason());
    }
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

}  // namespace myxtts
