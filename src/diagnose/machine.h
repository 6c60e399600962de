// Machine properties that affect training: disk, memory, CPU governor and limits, read from /proc and /sys. Unknown if
// the system does not report them. Any thread.
#pragma once

#include "diagnose/diagnosis.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace myxtts {

struct MachineView {
  std::optional<bool> rotational;  // of the disk that holds the corpus
  std::string storage;             // its name: "nvme0n1", "overlay", "nfs4"
  uint64_t corpus_bytes = 0;       // total size of the clips
  uint64_t cached_bytes = 0, available_bytes = 0;
  std::optional<double> memory_pressure;  // PSI: share of the last minute with a memory stall
  std::optional<std::string> governor;    // cpufreq; "powersave, performance" if CPUs differ
  std::optional<uint64_t> locked_bytes;   // RLIMIT_MEMLOCK; empty: no limit
  std::optional<bool> gpu_throttled;      // clocks held down by heat or power; empty: unknown
  std::string gpu_throttle_reason;
};

// `root` contains proc/ and sys/, for tests. `corpus` is a file or folder.
MachineView view_machine(const std::filesystem::path& corpus, uint64_t corpus_bytes,
                         const std::filesystem::path& root = "/");

// Reads the throttle state of a CUDA device; stays unknown if the driver does not report it.
void view_gpu(MachineView& view, int device);

// Builds the check-list: each check is ok, attention or unknown.
std::vector<Check> check_list(const PipelineSetup& setup, const MachineView& machine);

}  // namespace myxtts
