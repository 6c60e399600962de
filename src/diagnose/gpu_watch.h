// Verdict on GPU telemetry over some seconds. Pure functions; any thread.
#pragma once

#include "device/gpu_readings.h"
#include "diagnose/oscillation.h"

#include <optional>
#include <span>
#include <string>

namespace myxtts {

struct TimedSample {
  double at_s = 0;
  GpuSample gpu;
};

struct WatchVerdict {
  // Judged by SM activity if the GPU reports it, because NVML utilisation is averaged over a window that hides short
  // waits.
  bool by_sm_activity = false;
  SummaryStats utilisation;  // the judged series, in per cent
  GpuUse use = GpuUse::steady;
  std::optional<double> period_s;
  std::string sentence;  // "fluctuating: the GPU swings between 0 % and 98 % every 2.0 s; ..."
};

// Throws Error if no sample has either metric.
WatchVerdict judge(std::span<const TimedSample> samples);

}  // namespace myxtts
