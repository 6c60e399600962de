// Fake libnvidia-ml.so.1 that simulates a GPU with a square-wave load:
//   FAKE_NVML_WAVE=LOW,HIGH,PERIOD_S   per cent; half of each period at HIGH; a period of 0 stays at HIGH
//   FAKE_NVML_GPUS=N                   number of GPUs [2]
//   FAKE_NVML_GPM=1                    GPM counters of SM and tensor activity, as on Hopper
//   FAKE_NVML_REASONS=BITS             throttle reasons [0]
//   FAKE_NVML_FAILS=init               nvmlInit fails
// The layouts are declared independently from the NVML documentation, not taken from src/device/nvml.h.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

constexpr int done = 0, invalid_argument = 2, not_supported = 3, not_found = 6, driver_not_loaded = 9;

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string setting(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

unsigned gpus() { return static_cast<unsigned>(std::stoi(setting("FAKE_NVML_GPUS", "2"))); }

// Mean of the wave between two times.
double load(double from_s, double to_s) {
  double low = 0, high = 100, period = 0;
  if (std::sscanf(setting("FAKE_NVML_WAVE", "0,100,0").c_str(), "%lf,%lf,%lf", &low, &high, &period) != 3) return -1;
  if (period <= 0) return high;
  const auto busy_s = [&](double t) {
    return std::floor(t / period) * period / 2 + std::min(std::fmod(t, period), period / 2);
  };
  return low + (high - low) * (busy_s(to_s) - busy_s(from_s)) / (to_s - from_s);
}

double load_now() { return load(now_s() - 0.17, now_s()); }  // NVML averages utilisation over a window

// A handle is the GPU index plus one.
unsigned number_of(void* device) { return static_cast<unsigned>(reinterpret_cast<size_t>(device)) - 1; }

}  // namespace

extern "C" {

struct UtilizationRates {
  unsigned gpu, memory;
};
struct MemoryInfo {
  unsigned long long total, free, used;
};
struct GpmSupport {
  unsigned version, isSupportedDevice;
};
struct GpmMetric {
  unsigned metricId;
  int nvmlReturn;
  double value;
  struct {
    char *shortName, *longName, *unit;
  } metricInfo;
};
struct GpmMetricsGet {
  unsigned version, numMetrics;
  double *sample1, *sample2;
  GpmMetric metrics[333];
};

int nvmlInit_v2() { return setting("FAKE_NVML_FAILS", "") == "init" ? driver_not_loaded : done; }
int nvmlShutdown() { return done; }
const char* nvmlErrorString(int result) { return result == driver_not_loaded ? "Driver Not Loaded" : "Some Error"; }

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = gpus();
  return done;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= gpus()) return invalid_argument;
  *device = reinterpret_cast<void*>(static_cast<size_t>(index) + 1);
  return done;
}

// GPU N is on bus N + 1.
int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  unsigned domain = 0, bus = 0;
  if (std::sscanf(id, "%x:%x:", &domain, &bus) != 2 || bus < 1 || bus > gpus()) return not_found;
  return nvmlDeviceGetHandleByIndex_v2(bus - 1, device);
}

int nvmlDeviceGetName(void* device, char* name, unsigned length) {
  std::snprintf(name, length, "Fake GPU %u", number_of(device));
  return done;
}

int nvmlDeviceGetUtilizationRates(void*, UtilizationRates* rates) {
  *rates = {static_cast<unsigned>(load_now() + 0.5), 7};
  return done;
}

int nvmlDeviceGetMemoryInfo(void*, MemoryInfo* info) {
  *info = {16ULL << 30, 12ULL << 30, 4ULL << 30};
  return done;
}

int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 60000 + static_cast<unsigned>(2400 * load_now());
  return done;
}

int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  *milliwatts = 300000;
  return done;
}

int nvmlDeviceGetClockInfo(void*, int clock, unsigned* mhz) {
  *mhz = clock == 1 ? 1500 : clock == 2 ? 2600 : 0;
  return done;
}

int nvmlDeviceGetMaxClockInfo(void*, int clock, unsigned* mhz) {
  *mhz = clock == 1 ? 1980 : clock == 2 ? 2619 : 0;
  return done;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = std::stoull(setting("FAKE_NVML_REASONS", "0"));
  return done;
}

int nvmlDeviceGetTemperature(void*, int sensor, unsigned* celsius) {
  if (sensor != 0) return invalid_argument;
  *celsius = 61;
  return done;
}

int nvmlDeviceGetPcieThroughput(void*, int counter, unsigned* kb_per_s) {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  *kb_per_s = counter == 0 ? 2048 : 102400;
  return done;
}

int nvmlGpmQueryDeviceSupport(void*, GpmSupport* support) {
  if (support->version != 1) return invalid_argument;
  support->isSupportedDevice = setting("FAKE_NVML_GPM", "0") == "1" ? 1 : 0;
  return done;
}

int nvmlGpmSampleAlloc(double** sample) {
  *sample = new double(0);
  return done;
}

int nvmlGpmSampleFree(double* sample) {
  delete sample;
  return done;
}

int nvmlGpmSampleGet(void*, double* sample) {
  *sample = now_s();
  return done;
}

int nvmlGpmMetricsGet(GpmMetricsGet* get) {
  if (get->version != 1 || get->numMetrics > 333 || *get->sample1 >= *get->sample2) return invalid_argument;
  const double mean = load(*get->sample1, *get->sample2);
  for (unsigned i = 0; i < get->numMetrics; ++i) {
    GpmMetric& metric = get->metrics[i];
    metric.nvmlReturn = done;
    switch (metric.metricId) {
      case 2:
        metric.value = 0.9 * mean;
        break;
      case 5:
        metric.value = 0.5 * mean;
        break;
      case 20:
        metric.value = 3;
        break;
      case 21:
        metric.value = 200;
        break;
      default:
        metric.nvmlReturn = not_supported;
    }
  }
  return done;
}

}  // extern "C"
