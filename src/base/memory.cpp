#include "base/memory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

#include <unistd.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

// "max" means no limit.
std::optional<uint64_t> number_in(const fs::path& file) {
  std::ifstream text(file);
  uint64_t number = 0;
  if (text >> number) return number;
  return std::nullopt;
}

void limit_to_group(HostMemory& memory, const fs::path& group, const char* most, const char* used) {
  const std::optional<uint64_t> limit = number_in(group / most);
  if (!limit || *limit >= memory.total_bytes) return;
  memory.total_bytes = *limit;
  memory.available_bytes =
      std::min(memory.available_bytes, *limit - std::min(*limit, number_in(group / used).value_or(0)));
}

}  // namespace

HostMemory host_memory(const fs::path& root) {
  HostMemory memory;
  std::ifstream lines(root / "proc/meminfo");
  for (std::string key, unit; lines >> key;) {
    uint64_t kilobytes = 0;
    lines >> kilobytes;
    std::getline(lines, unit);
    if (key == "MemTotal:") memory.total_bytes = kilobytes << 10;
    if (key == "MemAvailable:") memory.available_bytes = kilobytes << 10;
  }
  // cgroup v2 of this process and all its parents, then v1.
  fs::path own;
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with("0::/")) own = line.substr(4);
  }
  for (;; own = own.parent_path()) {
    limit_to_group(memory, root / "sys/fs/cgroup" / own, "memory.max", "memory.current");
    if (own.empty()) break;
  }
  limit_to_group(memory, root / "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes");
  return memory;
}

uint64_t resident_bytes() {
  std::ifstream pages("/proc/self/statm");
  uint64_t whole = 0, resident = 0;
  pages >> whole >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace myxtts
