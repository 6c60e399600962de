#include "base/folder_lock.h"

#include "base/error.h"
#include "base/system_calls.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

}  // namespace

FolderLock::FolderLock(const char* command, const fs::path& folder) {
  while (!take(command, folder)) {
  }
}

FolderLock::~FolderLock() {
  // By its present name: its folder may have been renamed. While it is locked: who has opened it sees that it has no
  // name any more.
  std::error_code none;
  const fs::path file = fs::read_symlink(fmt::format("/proc/self/fd/{}", descriptor_), none);
  if (!none) remove_file(file);
  ::close(descriptor_);
}

bool FolderLock::take(const char* command, const fs::path& folder) {
  const fs::path file = folder / file_name;
  descriptor_ = open_file(file, O_RDWR | O_CREAT | O_NOFOLLOW);
  if (descriptor_ < 0) fail(command, "{}: {}", file.string(), system_reason());
  const bool taken = lock_file(descriptor_) || errno != EWOULDBLOCK;  // without locks the folder is used all the same
  if (is_unlinked(descriptor_)) {                                     // the one before ended meanwhile
    ::close(descriptor_);
    return false;
  }
  if (!taken) {
    char holder[1024] = {};
    [[maybe_unused]] const ssize_t got = ::pread(descriptor_, holder, sizeof holder - 1, 0);
    *std::find(std::begin(holder), std::end(holder) - 1, '\n') = '\0';
    ::close(descriptor_);
    reject_input(command, "{} is in use by {}", folder.string(), *holder == '\0' ? "another process" : holder,
                 way_out("wait until it ends, or give another folder"));
  }
  const std::string holder = fmt::format("process {} on {}\n", ::getpid(), host_name());
  [[maybe_unused]] const bool named =
      ::ftruncate(descriptor_, 0) == 0 && write_at(descriptor_, std::as_bytes(std::span(holder)), 0);
  return true;
}

}  // namespace myxtts
