// What a GPU's readings over some seconds say together. Pure functions; any thread.
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
  // What was judged: SM activity between samples where the card counts it, since NVML's utilisation is itself a mean
  // over a window that can hide a short wait.
  bool by_sm_activity = false;
  Spread utilisation;  // of what was judged, in per cent
  GpuUse use = GpuUse::steady;
  std::optional<double> period_s;
  std::string sentence;  // "fluctuating: the GPU swings between 0 % and 98 % every 2.0 s; ..."
};

// Throws Error where no sample has either figure.
WatchVerdict judge(std::span<const TimedSample> samples);

}  // namespace myxtts
