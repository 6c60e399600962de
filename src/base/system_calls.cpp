#include "base/system_calls.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace myxtts {
namespace {

template <typename Call>
bool write_pieces(std::span<const std::byte> bytes, const Call& call) {
  while (!bytes.empty()) {
    const ssize_t written = call(bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = ENOSPC;  // a device that takes nothing would be asked forever
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

template <typename Call>
bool until_uninterrupted(const Call& call) {
  for (;;) {
    if (call() == 0) return true;
    if (errno != EINTR) return false;
  }
}

}  // namespace

std::string system_reason() { return std::strerror(errno); }

int open_file(const std::filesystem::path& path, int flags) {
  for (;;) {
    const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0644);
    if (descriptor >= 0 || errno != EINTR) return descriptor;
  }
}

bool write_all(int descriptor, std::span<const std::byte> bytes) {
  return write_pieces(bytes,
                      [&](std::span<const std::byte> rest) { return ::write(descriptor, rest.data(), rest.size()); });
}

bool write_at(int descriptor, std::span<const std::byte> bytes, uint64_t offset) {
  const std::byte* const first = bytes.data();
  return write_pieces(bytes, [&](std::span<const std::byte> rest) {
    const auto done = static_cast<uint64_t>(rest.data() - first);
    return ::pwrite(descriptor, rest.data(), rest.size(), static_cast<off_t>(offset + done));
  });
}

bool sync_file(int descriptor) {
  return until_uninterrupted([&] { return ::fsync(descriptor); });
}

bool lock_file(int descriptor) {
  return until_uninterrupted([&] { return ::flock(descriptor, LOCK_EX | LOCK_NB); });
}

bool is_unlinked(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && status.st_nlink == 0;
}

bool list_names(const std::filesystem::path& folder, std::vector<std::string>& names) {
  DIR* opened = nullptr;
  while ((opened = ::opendir(folder.c_str())) == nullptr) {
    if (errno != EINTR) return false;
  }
  int error = EINTR;
  while (error == EINTR) {
    errno = 0;
    while (const dirent* const entry = ::readdir(opened)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
      errno = 0;
    }
    error = errno;
  }
  ::closedir(opened);
  errno = error;
  return error == 0;
}

bool replace_file(const std::filesystem::path& from, const std::filesystem::path& to) {
  return until_uninterrupted([&] { return ::rename(from.c_str(), to.c_str()); });
}

bool remove_file(const std::filesystem::path& path) {
  return until_uninterrupted([&] { return ::unlink(path.c_str()); });
}

bool link_file(const std::filesystem::path& from, const std::filesystem::path& to) {
  return until_uninterrupted([&] { return ::link(from.c_str(), to.c_str()); });
}

Descriptor::~Descriptor() {
  if (number >= 0) ::close(number);
}

}  // namespace myxtts
