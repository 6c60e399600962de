// What the driver knows of a GPU while any process uses it, through NVIDIA's management library (NVML). The library is
// looked for at run time: nothing of CUDA is needed to build or to run this. MYXTTS_NVML_LIBRARY names another file
// than libnvidia-ml.so.1. An object is for one thread at a time; several may be open at once, and none disturbs the
// GPU's work.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace myxtts {

// What does not change. A card that does not report a figure has none.
struct GpuLimits {
  std::optional<double> memory_mb, power_w, sm_mhz, memory_mhz;
};

struct GpuSample {
  // Share of time in which any kernel ran, as nvidia-smi shows it: the driver's own average over its last window, which
  // is up to a second long.
  std::optional<double> utilisation_percent;
  // Between the sample before and this one, on cards that count them (Hopper and later). An SM is one of the GPU's
  // processors.
  std::optional<double> sm_active_percent, tensor_active_percent, pcie_from_gpu_mb_s, pcie_to_gpu_mb_s;
  std::optional<double> memory_used_mb, power_w, sm_mhz, memory_mhz, temperature_c;
  std::string throttled;  // why clocks are held down: "power limit, heat"; empty where they are not
};

struct PcieTraffic {
  std::optional<double> from_gpu_mb_s, to_gpu_mb_s;
};

class GpuReadings {
 public:
  // The GPU of that number in nvidia-smi, or the one in that place (`device_bus_id` of a CUDA device). Both throw Error
  // where there is no driver or no such GPU.
  static GpuReadings of_number(int number);
  static GpuReadings of_bus_id(const std::string& bus_id);
  ~GpuReadings();
  GpuReadings(GpuReadings&&) noexcept;
  GpuReadings& operator=(GpuReadings&&) noexcept;

  const std::string& name() const;
  const GpuLimits& limits() const;

  // About ten questions to the driver. The first call waits up to a tenth of a second, until the card has counted.
  GpuSample sample();

  // One question, which waits for nothing.
  std::optional<double> utilisation_percent() const;

  // For cards that do not count traffic themselves: the driver counts for 20 ms in each direction, and this waits for
  // it.
  PcieTraffic measure_pcie();

 private:
  struct State;
  explicit GpuReadings(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace myxtts
