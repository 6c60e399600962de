#include "base/files.h"

#include "base/error.h"
#include "base/root_folder.h"
#include "base/system_calls.h"
#include "base/work_clock.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void cannot_write(const fs::path& path) { fail("write", "{}: {}", path.string(), system_reason()); }

// Never one that is there, nor what a link of that name points to: a folder may be anyone's to write in.
// Locked as long as it is written; remove_leftovers() may take it for a leftover before that.
int make_temporary(const fs::path& temporary) {
  for (;;) {
    remove_file(temporary);
    const int descriptor = open_file(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
    if (descriptor < 0) return descriptor;
    lock_file(descriptor);
    if (!is_unlinked(descriptor)) return descriptor;
    ::close(descriptor);
  }
}

// Syncs the folder, so that a rename is durable. Ignores file systems that cannot do it, since the file is complete.
void sync_folder(const fs::path& folder) {
  const Descriptor directory{open_file(folder, O_RDONLY | O_DIRECTORY)};
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

std::vector<fs::path> list_folder(const fs::path& folder) {
  std::vector<std::string> names;
  if (!list_names(folder, names)) fail_as(ErrorCode::missing, "read", "{}: {}", folder.string(), system_reason());
  std::ranges::sort(names);
  std::vector<fs::path> found;
  for (const std::string& name : names) found.push_back(folder / name);
  return found;
}

void write_file_atomically(const fs::path& path, std::span<const std::byte> bytes, Sync sync) {
  const fs::path temporary = folder_of(path) / fmt::format(".{}.{}.tmp", path.filename().string(), ::getpid());
  try {
    const Descriptor file{make_temporary(temporary)};
    if (file.number < 0 || !write_all(file.number, bytes)) cannot_write(path);
    if (sync == Sync::yes && !sync_file(file.number)) cannot_write(path);
    if (!replace_file(temporary, path)) cannot_write(path);
  } catch (...) {
    remove_file(temporary);
    throw;
  }
  if (sync == Sync::yes) sync_folder(folder_of(path));
}

void write_file_atomically(const fs::path& path, std::string_view text, Sync sync) {
  write_file_atomically(path, std::as_bytes(std::span(text)), sync);
}

FileWriter::FileWriter(fs::path path) : path_(std::move(path)) {
  temporary_ = folder_of(path_) / fmt::format(".{}.{}.tmp", path_.filename().string(), ::getpid());
  descriptor_ = make_temporary(temporary_);
  if (descriptor_ < 0) cannot_write(path_);
}

FileWriter::~FileWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  remove_file(temporary_);
}

void remove_leftovers(const fs::path& folder) noexcept try {
  for (const fs::path& path : list_folder(folder)) {
    const std::string name = path.filename().string();
    if (!name.starts_with('.') || !name.ends_with(".tmp")) continue;
    const Descriptor file{open_file(path, O_RDONLY | O_NOFOLLOW)};
    if (file.number >= 0 && lock_file(file.number)) remove_file(path);
  }
} catch (const std::exception&) {  // they stay until the next time
}

void FileWriter::write(std::span<const std::byte> bytes) {
  constexpr size_t enough = 1 << 20;
  position_ += bytes.size();
  if (pending_.size() + bytes.size() >= enough) flush();
  if (bytes.size() >= enough) {
    if (!write_all(descriptor_, bytes)) cannot_write(path_);
    return;
  }
  pending_.insert(pending_.end(), bytes.begin(), bytes.end());
}

void FileWriter::overwrite(uint64_t at, std::span<const std::byte> bytes) {
  flush();
  if (!write_at(descriptor_, bytes, at)) cannot_write(path_);
}

void FileWriter::finish() {
  flush();
  if (!sync_file(descriptor_) || !replace_file(temporary_, path_)) cannot_write(path_);
  ::close(std::exchange(descriptor_, -1));
  sync_folder(folder_of(path_));
}

void FileWriter::flush() {
  if (!write_all(descriptor_, pending_)) cannot_write(path_);
  pending_.clear();
}

ReadOnlyFile::ReadOnlyFile(const fs::path& path, const RootFolder* root) : path_(path) {
  const WorkTimer timer(&WorkClock::reading_ns);
  Descriptor file{root != nullptr ? root->open(path) : open_file(path, O_RDONLY)};
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
