#include "device/gpu_readings.h"

#include "base/clock.h"
#include "base/error.h"
#include "device/nvml.h"

#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include <dlfcn.h>

namespace myxtts {
namespace {

using nvml::Device;
using nvml::GpmSample;
using nvml::Result;

const char* library_file() {
  const char* const named = std::getenv("MYXTTS_NVML_LIBRARY");
  return named != nullptr && *named != '\0' ? named : "libnvidia-ml.so.1";
}

// Owns the loaded library. Functions that an older driver lacks are null; `query` handles that.
class Library {
 public:
  Library() : handle_(::dlopen(library_file(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) {
      reject_input("gpu", "cannot load the NVIDIA driver library {}", library_file(), way_out("install the driver"));
    }
    try {
      need("nvmlInit_v2", init);
      need("nvmlShutdown", shutdown);
      need("nvmlErrorString", error_string);
      need("nvmlDeviceGetCount_v2", device_count);
      need("nvmlDeviceGetHandleByIndex_v2", device_by_number);
      need("nvmlDeviceGetHandleByPciBusId_v2", device_by_bus_id);
      need("nvmlDeviceGetName", name);
      if (const Result result = init(); result != 0) {
        reject_input("gpu", "cannot initialise the NVIDIA driver ({})", error_string(result),
                     way_out("does nvidia-smi work?"));
      }
    } catch (...) {
      ::dlclose(handle_);
      throw;
    }
    find("nvmlDeviceGetUtilizationRates", utilisation);
    find("nvmlDeviceGetMemoryInfo", memory);
    find("nvmlDeviceGetPowerUsage", power);
    find("nvmlDeviceGetEnforcedPowerLimit", power_limit);
    find("nvmlDeviceGetClockInfo", clock);
    find("nvmlDeviceGetMaxClockInfo", max_clock);
    find("nvmlDeviceGetCurrentClocksThrottleReasons", throttle_reasons);
    find("nvmlDeviceGetTemperature", temperature);
    find("nvmlDeviceGetPcieThroughput", pcie_throughput);
    find("nvmlGpmQueryDeviceSupport", gpm_support);
    find("nvmlGpmSampleAlloc", gpm_allocate);
    find("nvmlGpmSampleFree", gpm_free);
    find("nvmlGpmSampleGet", gpm_sample);
    find("nvmlGpmMetricsGet", gpm_metrics);
  }
  ~Library() {
    shutdown();
    ::dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  Result (*init)() = nullptr;
  Result (*shutdown)() = nullptr;
  const char* (*error_string)(Result) = nullptr;
  Result (*device_count)(unsigned*) = nullptr;
  Result (*device_by_number)(unsigned, Device*) = nullptr;
  Result (*device_by_bus_id)(const char*, Device*) = nullptr;
  Result (*name)(Device, char*, unsigned) = nullptr;
  Result (*utilisation)(Device, nvml::Utilisation*) = nullptr;
  Result (*memory)(Device, nvml::Memory*) = nullptr;
  Result (*power)(Device, unsigned*) = nullptr;
  Result (*power_limit)(Device, unsigned*) = nullptr;
  Result (*clock)(Device, nvml::Clock, unsigned*) = nullptr;
  Result (*max_clock)(Device, nvml::Clock, unsigned*) = nullptr;
  Result (*throttle_reasons)(Device, unsigned long long*) = nullptr;
  Result (*temperature)(Device, int, unsigned*) = nullptr;
  Result (*pcie_throughput)(Device, nvml::PcieCounter, unsigned*) = nullptr;
  Result (*gpm_support)(Device, nvml::GpmSupport*) = nullptr;
  Result (*gpm_allocate)(GpmSample*) = nullptr;
  Result (*gpm_free)(GpmSample) = nullptr;
  Result (*gpm_sample)(Device, GpmSample) = nullptr;
  Result (*gpm_metrics)(nvml::GpmMetrics*) = nullptr;

 private:
  template <typename Function>
  void find(const char* symbol, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(handle_, symbol));
  }
  template <typename Function>
  void need(const char* symbol, Function& function) {
    find(symbol, function);
    if (function == nullptr) {
      reject_input("gpu", "{} has no {}", library_file(), symbol, way_out("the driver is too old, update it"));
    }
  }

  void* handle_;
};

// Returns whether the function exists and succeeded.
template <typename... Parameters, typename... Arguments>
bool query(Result (*function)(Parameters...), Arguments... arguments) {
  return function != nullptr && function(arguments...) == 0;
}

// One value, scaled to the unit of the caller.
template <typename... Parameters, typename... Arguments>
std::optional<double> reading(double unit, Result (*function)(Parameters...), Arguments... arguments) {
  unsigned value = 0;
  if (!query(function, arguments..., &value)) return {};
  return value * unit;
}

constexpr double mb = 1.0 / (1 << 20), milli = 1e-3, whole = 1, kb_in_mb = 1.0 / 1024;

// Ignores idle clocks and clocks set by the user, which are not throttling.
std::string in_words(unsigned long long reasons) {
  constexpr std::pair<unsigned long long, const char*> words[] = {
      {0x04, "power limit"},  {0x08, "hardware slowdown"}, {0x20, "heat"},
      {0x40, "extreme heat"}, {0x80, "power supply"},      {0x10, "in step with other GPUs"}};
  std::string text;
  for (const auto& [bit, word] : words) {
    if ((reasons & bit) != 0) text += (text.empty() ? "" : ", ") + std::string(word);
  }
  return text;
}

}  // namespace

struct GpuReadings::State {
  Library library;
  Device device = nullptr;
  std::string name;
  GpuLimits limits;
  GpmSample before = nullptr, after = nullptr;  // null without GPM counters
  nvml::GpmMetrics metrics{};
  Stopwatch since_count;
  bool first_count = true;
  GpuSample counted;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (before != nullptr) library.gpm_free(before);
    if (after != nullptr) library.gpm_free(after);
  }

  void open() {
    std::array<char, 96> text{};
    if (library.name(device, text.data(), text.size()) == 0) name = text.data();
    nvml::Memory memory{};
    if (query(library.memory, device, &memory)) limits.memory_mb = static_cast<double>(memory.total) * mb;
    limits.power_w = reading(milli, library.power_limit, device);
    limits.sm_mhz = reading(whole, library.max_clock, device, nvml::sm_clock);
    limits.memory_mhz = reading(whole, library.max_clock, device, nvml::memory_clock);
    start_counting();
  }

  void start_counting() {
    nvml::GpmSupport support{1, 0};
    if (library.gpm_free == nullptr || library.gpm_metrics == nullptr) return;
    if (!query(library.gpm_support, device, &support) || support.supported == 0) return;
    if (query(library.gpm_allocate, &before) && query(library.gpm_allocate, &after) &&
        query(library.gpm_sample, device, before)) {
      return;
    }
    for (GpmSample* const sample : {&before, &after}) {
      if (*sample != nullptr) library.gpm_free(std::exchange(*sample, nullptr));
    }
  }

  // GPM metrics since the previous sample. Counters update every 100 ms: earlier calls return the last values, and the
  // first call blocks.
  void count(GpuSample& sample) {
    constexpr double step_s = 0.1;
    if (before == nullptr) return;
    if (std::exchange(first_count, false)) {
      std::this_thread::sleep_for(std::chrono::duration<double>(step_s - since_count.seconds()));
    }
    if (since_count.seconds() < step_s) {
      sample.sm_active_percent = counted.sm_active_percent;
      sample.tensor_active_percent = counted.tensor_active_percent;
      sample.pcie_from_gpu_mb_s = counted.pcie_from_gpu_mb_s;
      sample.pcie_to_gpu_mb_s = counted.pcie_to_gpu_mb_s;
      return;
    }
    since_count.restart();
    if (!query(library.gpm_sample, device, after)) return;
    const std::pair<nvml::GpmMetricId, std::optional<double>*> wanted[] = {
        {nvml::gpm_sm_active, &sample.sm_active_percent},
        {nvml::gpm_tensor_active, &sample.tensor_active_percent},
        {nvml::gpm_pcie_from_gpu, &sample.pcie_from_gpu_mb_s},
        {nvml::gpm_pcie_to_gpu, &sample.pcie_to_gpu_mb_s}};
    metrics.version = 1, metrics.count = 0;
    metrics.before = before, metrics.after = after;
    for (const auto& [id, value] : wanted) metrics.metrics[metrics.count++] = {id, 0, 0, nullptr, nullptr, nullptr};
    if (library.gpm_metrics(&metrics) == 0) {
      for (size_t i = 0; i < std::size(wanted); ++i) {
        if (metrics.metrics[i].result == 0) *wanted[i].second = metrics.metrics[i].value;
      }
    }
    std::swap(before, after);
    counted = sample;
  }
};

GpuReadings::GpuReadings(std::unique_ptr<State> state) : state_(std::move(state)) { state_->open(); }
GpuReadings::~GpuReadings() = default;
GpuReadings::GpuReadings(GpuReadings&&) noexcept = default;
GpuReadings& GpuReadings::operator=(GpuReadings&&) noexcept = default;

GpuReadings GpuReadings::of_number(int number) {
  auto state = std::make_unique<State>();
  unsigned count = 0;
  if (state->library.device_count(&count) != 0 || count == 0) {
    reject_input("gpu", "the NVIDIA driver finds no GPU", way_out("does nvidia-smi list one?"));
  }
  if (number < 0 || static_cast<unsigned>(number) >= count) {
    reject_input("gpu", "there is no GPU {}", number, way_out("nvidia-smi lists GPUs from 0 to {}", count - 1));
  }
  if (const Result result = state->library.device_by_number(static_cast<unsigned>(number), &state->device);
      result != 0) {
    reject_input("gpu", "cannot open GPU {} ({})", number, state->library.error_string(result),
                 way_out("may this user read it?"));
  }
  return GpuReadings(std::move(state));
}

GpuReadings GpuReadings::of_bus_id(const std::string& bus_id) {
  auto state = std::make_unique<State>();
  if (const Result result = state->library.device_by_bus_id(bus_id.c_str(), &state->device); result != 0) {
    reject_input("gpu", "cannot open the GPU at {} ({})", bus_id, state->library.error_string(result),
                 way_out("nvidia-smi shows the bus IDs"));
  }
  return GpuReadings(std::move(state));
}

const std::string& GpuReadings::name() const { return state_->name; }
const GpuLimits& GpuReadings::limits() const { return state_->limits; }

std::optional<double> GpuReadings::utilisation_percent() const {
  nvml::Utilisation utilisation{};
  if (!query(state_->library.utilisation, state_->device, &utilisation)) return {};
  return utilisation.gpu;
}

GpuSample GpuReadings::sample() {
  const Library& library = state_->library;
  const Device device = state_->device;
  GpuSample sample;
  state_->count(sample);
  sample.utilisation_percent = utilisation_percent();
  nvml::Memory memory{};
  if (query(library.memory, device, &memory)) sample.memory_used_mb = static_cast<double>(memory.used) * mb;
  sample.power_w = reading(milli, library.power, device);
  sample.sm_mhz = reading(whole, library.clock, device, nvml::sm_clock);
  sample.memory_mhz = reading(whole, library.clock, device, nvml::memory_clock);
  sample.temperature_c = reading(whole, library.temperature, device, 0);
  unsigned long long reasons = 0;
  if (query(library.throttle_reasons, device, &reasons)) sample.throttled = in_words(reasons);
  return sample;
}

PcieTraffic GpuReadings::measure_pcie() {
  const Library& library = state_->library;
  return {reading(kb_in_mb, library.pcie_throughput, state_->device, nvml::pcie_from_gpu),
          reading(kb_in_mb, library.pcie_throughput, state_->device, nvml::pcie_to_gpu)};
}

}  // namespace myxtts
