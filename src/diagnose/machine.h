// What the machine itself says about disks, memory, processors and limits: read from /proc and /sys, and unknown where
// they do not tell.
#pragma once

#include "diagnose/diagnosis.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace myxtts {

struct MachineView {
  std::optional<bool> rotational;  // the disk that the corpus lies on
  std::string storage;             // its name: "nvme0n1", "overlay", "nfs4"
  uint64_t corpus_bytes = 0;       // of the clips
  uint64_t cached_bytes = 0, available_bytes = 0;
  std::optional<double> memory_pressure;  // share of the last minute in which something waited for memory
  std::optional<std::string> governor;    // of the CPUs' frequency; "powersave, performance" where they differ
  std::optional<uint64_t> locked_bytes;   // that may be page-locked; nothing: no limit
  std::optional<bool> gpu_throttled;      // its clocks, by heat or power; nothing: not known
  std::string gpu_throttle_reason;
};

// `root` is for tests: where proc/ and sys/ lie. `corpus` is a file or folder.
MachineView view_machine(const std::filesystem::path& corpus, uint64_t corpus_bytes,
                         const std::filesystem::path& root = "/");

// The clocks of the GPU that the model is on, by a CUDA device's number; left unknown where the driver does not tell.
void view_gpu(MachineView& view, int device);

// The check-list: each line ok, attention or unknown, with its value.
std::vector<Check> check_list(const PipelineSetup& setup, const MachineView& machine);

}  // namespace myxtts
