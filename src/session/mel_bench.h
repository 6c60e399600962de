// `bench mel`: log-mel alone, samples in memory.
#pragma once

#include "features/mel_spec.h"

#include <string>
#include <vector>

namespace myxtts {

struct MelBench {
  std::string preset = "hifigan", device = "cpu";
  int clips = 64, repeats = 30;
  double seconds = 8;  // of a clip
};

struct MelBenchResult {
  std::string device;
  std::vector<double> batch_s;  // of each repeat
  double limit_times_real_time = 0;
  std::string limit;
};

// Throws Error that names the flag that is out of range.
MelBenchResult bench_mel(const MelBench& bench);

}  // namespace myxtts
