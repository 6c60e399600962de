// GPU telemetry from the driver through NVML, loaded at run time, so that neither build nor run needs CUDA.
// MYXTTS_NVML_LIBRARY overrides libnvidia-ml.so.1. An object is for one thread at a time; several may be open at once.
// Reading does not disturb work on the GPU.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace myxtts {

// Constant limits; empty if the GPU does not report them.
struct GpuLimits {
  std::optional<double> memory_mb, power_w, sm_mhz, memory_mhz;
};

struct GpuSample {
  // Share of time with any kernel running, as in nvidia-smi: averaged by the driver over up to one second.
  std::optional<double> utilisation_percent;
  // Since the previous sample, on GPUs with GPM counters (Hopper and later).
  std::optional<double> sm_active_percent, tensor_active_percent, pcie_from_gpu_mb_s, pcie_to_gpu_mb_s;
  std::optional<double> memory_used_mb, power_w, sm_mhz, memory_mhz, temperature_c;
  std::string throttled;  // throttle reasons, such as "power limit, heat"; empty if none
};

struct PcieTraffic {
  std::optional<double> from_gpu_mb_s, to_gpu_mb_s;
};

class GpuReadings {
 public:
  // Selects a GPU by nvidia-smi index or by PCI bus ID (see device_bus_id). Both throw Error if there is no driver or
  // no such GPU.
  static GpuReadings of_number(int number);
  static GpuReadings of_bus_id(const std::string& bus_id);
  ~GpuReadings();
  GpuReadings(GpuReadings&&) noexcept;
  GpuReadings& operator=(GpuReadings&&) noexcept;

  const std::string& name() const;
  const GpuLimits& limits() const;

  // About ten NVML calls. The first call blocks up to 100 ms for the GPM counters.
  GpuSample sample();

  // One NVML call; does not block.
  std::optional<double> utilisation_percent() const;

  // For GPUs without GPM counters: the driver samples PCIe traffic for 20 ms per direction, and this blocks for it.
  PcieTraffic measure_pcie();

 private:
  struct State;
  explicit GpuReadings(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace myxtts
