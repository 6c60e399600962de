// The subset of the NVML ABI that is used here, declared by hand so that its header is not needed. Layouts and numbers
// are those of the driver and are stable.
#pragma once

namespace myxtts::nvml {

using Device = struct DeviceHandle*;
using GpmSample = struct GpmSampleHandle*;
using Result = int;  // 0: success

enum Clock : int { sm_clock = 1, memory_clock = 2 };
enum PcieCounter : int { pcie_from_gpu = 0, pcie_to_gpu = 1 };
enum GpmMetricId : unsigned { gpm_sm_active = 2, gpm_tensor_active = 5, gpm_pcie_from_gpu = 20, gpm_pcie_to_gpu = 21 };

struct Utilisation {
  unsigned gpu, memory;  // per cent
};

struct Memory {
  unsigned long long total, free, used;  // bytes
};

struct GpmSupport {
  unsigned version, supported;  // version is 1
};

struct GpmMetric {
  unsigned id;    // in
  Result result;  // out, as is the rest
  double value;
  const char *short_name, *long_name, *unit;
};

// The array grows with every driver release (98 to 477 so far), but only `count` entries are accessed.
struct GpmMetrics {
  unsigned version;  // 1
  unsigned count;
  GpmSample before, after;
  GpmMetric metrics[512];
};

static_assert(sizeof(GpmMetric) == 40 && sizeof(GpmMetrics) == 24 + 512 * 40);

}  // namespace myxtts::nvml
