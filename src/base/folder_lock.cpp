#include "base/folder_lock.h"

#include "base/error.h"
#include "base/files.h"
#include "base/system_calls.h"

#include <cerrno>
#include <string>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

bool lock_now(int descriptor) {
  for (;;) {
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EINTR) return false;
  }
}

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
  if (!none) ::unlink(file.c_str());
  ::close(descriptor_);
}

bool FolderLock::take(const char* command, const fs::path& folder) {
  const fs::path file = folder / file_name;
  descriptor_ = open_file(file, O_RDWR | O_CREAT | O_NOFOLLOW);
  if (descriptor_ < 0) fail(command, "{}: {}", file.string(), system_reason());
  if (!lock_now(descriptor_) && errno == EWOULDBLOCK) {
    ::close(descriptor_);
    constexpr uint64_t longest = 1024;
    std::string holder = read_text_file(file, longest);
    holder = holder.substr(0, holder.find('\n'));
    reject_input(command, "{} is in use by {}", folder.string(), holder.empty() ? "another process" : holder,
                 way_out("wait until it ends, or give another --checkpoint-dir"));
  }
  // A file system without locks has none to hold; the folder is used all the same.
  struct stat status {};
  if (::fstat(descriptor_, &status) == 0 && status.st_nlink == 0) {  // the one before removed it meanwhile
    ::close(descriptor_);
    return false;
  }
  const std::string holder = fmt::format("process {} on {}\n", ::getpid(), host_name());
  [[maybe_unused]] const bool named =
      ::ftruncate(descriptor_, 0) == 0 && write_at(descriptor_, std::as_bytes(std::span(holder)), 0);
  return true;
}

}  // namespace myxtts
