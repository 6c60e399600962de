// The memory that this process may use: the machine's, or less where a control group limits it, as in a container.
#pragma once

#include <cstdint>
#include <filesystem>

namespace myxtts {

struct HostMemory {
  uint64_t total_bytes = 0;
  uint64_t available_bytes = 0;  // without pushing others out
};

// `root` is for tests: where proc/ and sys/ lie.
HostMemory host_memory(const std::filesystem::path& root = "/");

}  // namespace myxtts
