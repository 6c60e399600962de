#include "diagnose/machine.h"

#include "base/error.h"
#include "base/memory.h"
#include "device/device.h"
#include "device/gpu_readings.h"

#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

std::optional<std::string> first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line)) return {};
  return line;
}

// A partition has no queue folder; its disk, the parent folder, has one.
void read_disk(MachineView& view, const fs::path& corpus, const fs::path& root) {
  struct stat status {};
  if (::stat(corpus.c_str(), &status) != 0) return;
  const fs::path device = root / "sys/dev/block" / fmt::format("{}:{}", major(status.st_dev), minor(status.st_dev));
  std::error_code none;
  const fs::path real = fs::canonical(device, none);
  if (none) return;
  view.storage = real.filename().string();
  for (const fs::path& place : {real, real.parent_path()}) {
    const std::optional<std::string> rotational = first_line(place / "queue/rotational");
    if (!rotational) continue;
    view.storage = place.filename().string();
    view.rotational = *rotational == "1";
    return;
  }
}

// File system type of a path, for storage that is not a local disk.
void read_mounts(MachineView& view, const fs::path& corpus, const fs::path& root) {
  std::error_code none;
  const std::string path = fs::canonical(corpus, none).string();
  std::ifstream mounts(root / "proc/self/mounts");
  size_t longest = 0;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string device, place, kind;
    words >> device >> place >> kind;
    const bool holds = path == place || place == "/" || path.starts_with(place + "/");
    if (holds && place.size() >= longest) longest = place.size(), view.storage = kind;
  }
}

void read_memory(MachineView& view, const fs::path& root) {
  view.available_bytes = host_memory(root).available_bytes;
  std::ifstream info(root / "proc/meminfo");
  for (std::string line; std::getline(info, line);) {
    std::istringstream words(line);
    std::string name;
    uint64_t kilobytes = 0;
    words >> name >> kilobytes;
    if (name == "Cached:") view.cached_bytes = kilobytes * 1024;
  }
  const std::optional<std::string> some = first_line(root / "proc/pressure/memory");
  if (!some) return;
  const size_t at = some->find("avg60=");
  if (at != std::string::npos) view.memory_pressure = std::strtod(some->c_str() + at + 6, nullptr) / 100;
}

void read_governors(MachineView& view, const fs::path& root) {
  std::set<std::string> governors;
  std::error_code none;
  for (const auto& cpu : fs::directory_iterator(root / "sys/devices/system/cpu", none)) {
    if (const auto governor = first_line(cpu.path() / "cpufreq/scaling_governor")) governors.insert(*governor);
  }
  if (!governors.empty()) view.governor = fmt::format("{}", fmt::join(governors, ", "));
}

std::string size_text(uint64_t bytes) {
  const auto size = static_cast<double>(bytes);
  return bytes < 1'000'000'000 ? fmt::format("{:.0f} MB", size * 1e-6) : fmt::format("{:.1f} GB", size * 1e-9);
}

Check line(std::string name, bool good, std::string value, std::string advice) {
  return {std::move(name), good ? CheckState::ok : CheckState::attention, std::move(value),
          good ? "" : std::move(advice)};
}

Check unknown(std::string name, std::string why) { return {std::move(name), CheckState::unknown, std::move(why), ""}; }

Check graph_mode(const PipelineSetup& setup) {
  if (!setup.model_on_gpu) return {"Graph mode", CheckState::ok, "the model is on the CPU: nothing to capture", ""};
  if (setup.eager_debug) {
    return line("Graph mode", false, "off, by training.enable_eager_debug", "set training.enable_eager_debug: false");
  }
  return line("Graph mode", setup.graph_mode, setup.graph_mode ? "on" : "off",
              "set training.enable_graph_mode: true: a captured step is one launch instead of a thousand");
}

Check workers(const PipelineSetup& setup) {
  if (!setup.native) return line("Workers", false, "none: the slow path", "set data.use_native_loading: true");
  const size_t spare = setup.model_on_gpu ? 3 : 0;
  const size_t enough = std::max<size_t>(1, setup.cores > 2 * spare ? (setup.cores - spare) / 2 : 1);
  return line("Workers", setup.workers >= enough, fmt::format("{} on {} cores", setup.workers, setup.cores),
              "leave data.num_workers to automatic tuning, or raise it while the consumer waits");
}

Check storage(const MachineView& machine) {
  if (!machine.rotational) {
    return unknown("Storage",
                   machine.storage.empty() ? "not reported" : fmt::format("{}, not a local disk", machine.storage));
  }
  if (*machine.rotational && machine.storage.starts_with("vd")) {
    return unknown("Storage", fmt::format("{}, a virtual disk: the physical disk is not reported", machine.storage));
  }
  return line("Storage", !*machine.rotational,
              fmt::format("{}, {}", machine.storage, *machine.rotational ? "rotational" : "not rotational"),
              "move the corpus to an SSD, or pack it with `myxtts prepare --pack`");
}

Check page_cache(const MachineView& machine) {
  if (machine.available_bytes == 0) return unknown("Page cache", "/proc/meminfo does not report it");
  const bool fits = machine.corpus_bytes < machine.available_bytes;
  const bool calm = !machine.memory_pressure || *machine.memory_pressure < 0.1;
  return line(
      "Page cache", fits && calm,
      fmt::format("corpus {}, {} available, {} cached{}", size_text(machine.corpus_bytes),
                  size_text(machine.available_bytes), size_text(machine.cached_bytes),
                  machine.memory_pressure ? fmt::format(", pressure {:.0f} %", 100 * *machine.memory_pressure) : ""),
      fits ? "other programs need memory: clips are evicted from the page cache"
           : "the corpus does not fit into memory: every epoch reads it from the disk again");
}

Check governor(const MachineView& machine) {
  if (!machine.governor) return unknown("CPU frequency", "the system does not report it, as in most virtual machines");
  const bool good = machine.governor->find("powersave") == std::string::npos &&
                    machine.governor->find("conservative") == std::string::npos;
  return line("CPU frequency", good, *machine.governor,
              "set the governor to performance or schedutil: `cpupower frequency-set -g performance`");
}

Check pinned(const PipelineSetup& setup, const MachineView& machine) {
  if (!setup.model_on_gpu) return {"Pinned memory", CheckState::ok, "the model is on the CPU: none is needed", ""};
  constexpr uint64_t min_bytes = 64 << 20;  // pinned memory of CUDA does not count against the limit
  if (!machine.locked_bytes) return {"Pinned memory", CheckState::ok, "no limit", ""};
  return line("Pinned memory", *machine.locked_bytes >= min_bytes,
              fmt::format("at most {:.0f} MB by `ulimit -l`", static_cast<double>(*machine.locked_bytes) * 1e-6),
              "raise `ulimit -l`: files registered with the GPU count against it");
}

Check clocks(const PipelineSetup& setup, const MachineView& machine) {
  if (!setup.model_on_gpu) return {"GPU clocks", CheckState::ok, "the model is on the CPU", ""};
  if (!machine.gpu_throttled) return unknown("GPU clocks", "the driver does not report them");
  return line("GPU clocks", !*machine.gpu_throttled,
              *machine.gpu_throttled ? fmt::format("throttled: {}", machine.gpu_throttle_reason) : "not throttled",
              "check its cooling and its power limit");
}

}  // namespace

MachineView view_machine(const fs::path& corpus, uint64_t corpus_bytes, const fs::path& root) {
  MachineView view;
  view.corpus_bytes = corpus_bytes;
  read_disk(view, corpus, root);
  if (!view.rotational) read_mounts(view, corpus, root);
  read_memory(view, root);
  read_governors(view, root);
  rlimit locked{};
  if (::getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur != RLIM_INFINITY)
    view.locked_bytes = locked.rlim_cur;
  return view;
}

void view_gpu(MachineView& view, int device) {
  try {
    view.gpu_throttle_reason = GpuReadings::of_bus_id(device_bus_id(device)).sample().throttled;
    view.gpu_throttled = !view.gpu_throttle_reason.empty();
  } catch (const Error&) {  // no driver: stays unknown
  }
}

std::vector<Check> check_list(const PipelineSetup& setup, const MachineView& machine) {
  std::vector<Check> checks;
  checks.push_back(line("Native loading", setup.native, setup.native ? "on" : "off: slow path found",
                        "set data.use_native_loading: true"));
  checks.push_back(graph_mode(setup));
  checks.push_back(line("Static shapes", setup.static_shapes, setup.static_shapes ? "on" : "off",
                        "set data.pad_to_fixed_length: true: every new shape is a retrace"));
  checks.push_back(workers(setup));
  constexpr size_t shallow = 4;
  checks.push_back(
      !setup.native
          ? line("Prefetch depth", false, "none: the slow path", "set data.use_native_loading: true")
          : line("Prefetch depth", setup.ring_batches >= shallow,
                 fmt::format("{} batches in the ring, {} read at a time", setup.ring_batches, setup.reading_batches),
                 "raise data.pipeline_buffer_size: a ring this small cannot hide a stall"));
  checks.push_back(storage(machine));
  checks.push_back(page_cache(machine));
  checks.push_back(governor(machine));
  checks.push_back(pinned(setup, machine));
  checks.push_back(clocks(setup, machine));
  return checks;
}

}  // namespace myxtts
