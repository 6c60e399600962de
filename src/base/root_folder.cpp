#include "base/root_folder.h"

#include "base/error.h"
#include "base/system_calls.h"

#include <algorithm>
#include <utility>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace myxtts {
namespace fs = std::filesystem;

RootFolder::RootFolder(const fs::path& folder)
    : prefix_((folder / "").string()),
      real_(fs::weakly_canonical(folder.empty() ? "." : folder)),
      descriptor_(open_file(real_, O_PATH | O_DIRECTORY)) {
  if (descriptor_ < 0) fail_as(ErrorCode::missing, "read", "{}: {}", folder.string(), system_reason());
}

RootFolder::~RootFolder() { ::close(descriptor_); }

bool RootFolder::holds(const fs::path& real) const { return std::ranges::mismatch(real_, real).in1 == real_.end(); }

std::optional<fs::path> RootFolder::outside(const fs::path& file) const {
  std::error_code none;
  fs::path real = fs::weakly_canonical(file, none);
  if (none || holds(real)) return std::nullopt;  // where it leads nowhere, it cannot be opened either
  return real;
}

int RootFolder::open(const fs::path& file) const {
  if (file.native().starts_with(prefix_)) {
    open_how how{};
    how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    const int64_t opened = ::syscall(SYS_openat2, descriptor_, file.c_str() + prefix_.size(), &how, sizeof how);
    if (opened >= 0) return static_cast<int>(opened);
  }
  // An absolute path or link may lead back into the folder, and Linux before 5.6 has no openat2.
  Descriptor opened{open_file(file, O_RDONLY)};
  if (opened.number < 0) return -1;
  std::error_code none;  // without /proc nothing is opened
  const fs::path real = fs::read_symlink(fmt::format("/proc/self/fd/{}", opened.number), none);
  if (!holds(real)) {
    fail_as(ErrorCode::unreadable, "read", "{} leads out of {}, to {}", file.string(), real_.string(), real.string(),
            way_out("set data.allow_outside: true if you trust the corpus"));
  }
  return std::exchange(opened.number, -1);
}

}  // namespace myxtts
