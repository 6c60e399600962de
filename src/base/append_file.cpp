#include "base/append_file.h"

#include "base/error.h"
#include "base/system_calls.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

// Bytes up to the end of the last line.
uint64_t whole_lines(int descriptor, uint64_t size) {
  char block[4096];
  for (uint64_t end = size; end > 0;) {
    const uint64_t begin = end - std::min<uint64_t>(end, sizeof block);
    const ssize_t got = ::pread(descriptor, block, end - begin, static_cast<off_t>(begin));
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(end - begin)) return size;  // it cannot be read: leave it as it is
    for (ssize_t i = got; i > 0; --i) {
      if (block[i - 1] == '\n') return begin + static_cast<uint64_t>(i);
    }
    end = begin;
  }
  return 0;
}

}  // namespace

AppendFile::AppendFile(fs::path path, int descriptor, uint64_t size)
    : path_(std::move(path)), descriptor_(descriptor), size_(size) {}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

AppendFile AppendFile::lines(const fs::path& path) {
  const int descriptor = open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW);
  if (descriptor < 0) fail("write", "{}: {}", path.string(), system_reason());
  AppendFile file(path, descriptor, 0);
  const off_t size = ::lseek(descriptor, 0, SEEK_END);
  if (size < 0) fail("write", "{}: {}", path.string(), system_reason());
  file.size_ = whole_lines(descriptor, static_cast<uint64_t>(size));
  if (file.size_ < static_cast<uint64_t>(size) && ::ftruncate(descriptor, static_cast<off_t>(file.size_)) != 0) {
    fail("write", "{}: {}", path.string(), system_reason());
  }
  return file;
}

std::unique_ptr<AppendFile> AppendFile::create(const fs::path& path) {
  const int descriptor = open_file(path, O_WRONLY | O_CREAT | O_EXCL);
  if (descriptor < 0 && errno == EEXIST) return nullptr;
  if (descriptor < 0) fail("write", "{}: {}", path.string(), system_reason());
  return std::unique_ptr<AppendFile>(new AppendFile(path, descriptor, 0));
}

void AppendFile::append(std::string_view piece) {
  if (write_at(descriptor_, std::as_bytes(std::span(piece)), size_)) {
    size_ += piece.size();
    return;
  }
  const std::string reason = system_reason();
  [[maybe_unused]] const int ignored = ::ftruncate(descriptor_, static_cast<off_t>(size_));  // or the next one does it
  fail("write", "{}: {}", path_.string(), reason);
}

}  // namespace myxtts
