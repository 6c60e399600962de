// What feeds the model: the mode, the sizes that the settings and the machine make of the loader, and the source of
// batches on the model's device. A run plans it once:
//
//   Feed feed = plan_feed(config, corpus, plan, choose_mode(config, real_devices()));
//   feed.loader.epoch = ...;
//   for (const auto& [name, text] : startup_facts(feed, config, plan)) ...
//   const std::unique_ptr<BatchSource> batches = open_feed(feed, corpus, plan);
#pragma once

#include "loader/loader.h"
#include "loader/mode.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace myxtts {

struct Feed {
  Mode mode;
  LoaderOptions loader;
  double start_delay_s = 0;        // before the first batch (Multi-GPU)
  std::vector<std::string> tuned;  // "num_workers 13: 16 cores, 3 left to other threads"
};

// What is free when a cache is sized.
struct FreeMemory {
  uint64_t gpu_bytes = 0;   // on the data device
  uint64_t host_bytes = 0;  // that this process may still have
};
FreeMemory measure_free_memory(const Mode& mode);

Feed plan_feed(const Config& config, const Corpus& corpus, const BatchPlan& plan, const Mode& mode);

// The clips that are kept: on the GPU a quarter of what the ring leaves free, three quarters where no model is to use
// the card; then a quarter of the host's memory, for separate files. Never more than the corpus has.
void size_caches(Feed& feed, const Corpus& corpus, const BatchPlan& plan, const FreeMemory& free);

// Mode, devices, buffer, delay, static shapes, loader, and what was tuned: a name and a text each, to be printed as
// "name: text". A name may come again.
std::vector<std::pair<std::string, std::string>> startup_facts(const Feed& feed, const Config& config,
                                                               const BatchPlan& plan,
                                                               const DeviceView& devices = real_devices());

// Batches on feed.mode.model_device. The references are kept.
std::unique_ptr<BatchSource> open_feed(const Feed& feed, const Corpus& corpus, const BatchPlan& plan);

}  // namespace myxtts
