// `bench loader`: a corpus from its files to ready batches, epoch after epoch.
#pragma once

#include "diagnose/oscillation.h"
#include "session/open.h"

#include <cstdint>
#include <string>

namespace myxtts {

struct LoaderBench {
  int64_t repeats = 10;                           // epochs
  int64_t gpu_cache_mb = -1, host_cache_mb = -1;  // -1: as for training
  double consumer_ms = 0;                         // what a step takes
};

struct LoaderBenchResult {
  std::string device;
  Feed feed;
  uint64_t batches_per_epoch = 0;
  int64_t batch_size = 0;
  SummaryStats times_real_time;  // over the epochs
  double limit = 0;              // times real time
  std::string limit_is;
  double batch_ms = 0, batch_cv = 0;  // from one batch to the next
  LoaderStats stats;                  // over the measured epochs
  double wall_s = 0, cpu_s = 0;
  double resident_mb = 0, resident_drift = 0;

  double share(double seconds) const { return seconds / wall_s; }
};

// The first epoch warms caches and is not counted.
LoaderBenchResult bench_loader(const LoaderBench& bench, const Config& config, const SessionListener& listener);

}  // namespace myxtts
