// Memory available to this process: that of the machine, or the cgroup limit in a container. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>

namespace myxtts {

struct HostMemory {
  uint64_t total_bytes = 0;
  uint64_t available_bytes = 0;  // without swapping
};

// `root` contains proc/ and sys/, for tests.
HostMemory host_memory(const std::filesystem::path& root = "/");

// Of this process; 0 if the system does not say.
uint64_t resident_bytes();

}  // namespace myxtts
