#include "loader/feed.h"

#include "base/counted.h"
#include "base/memory.h"
#include "base/workers.h"
#include "loader/crossing.h"
#include "loader/row_builder.h"
#include "loader/upload.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace myxtts {
namespace {

size_t places_on_model_device(const Feed& feed) { return std::min<size_t>(4, feed.loader.ring_batches); }

std::string gigabytes(uint64_t bytes) { return fmt::format("{:.2f} GB", static_cast<double>(bytes) * 1e-9); }

size_t max_batch_bytes(const LoaderOptions& options, const Corpus& corpus, const BatchPlan& plan) {
  return RowBuilder(corpus, plan, options.arrays, options.world_size).max_bytes();
}

// As the loader holds the plan's clips.
uint64_t clips_bytes(const Corpus& corpus, const BatchPlan& plan) {
  uint64_t bytes = 0;
  for (const Shape& shape : plan.shapes()) {
    for (const uint32_t clip : shape.clips) bytes += (corpus.index.loaded_bytes(clip) + 255) / 256 * 256;
  }
  return bytes;
}

void choose_sizes(Feed& feed, const DataConfig& data, const BatchPlan& plan) {
  LoaderOptions& loader = feed.loader;
  const bool on_gpu = feed.mode.model_device >= 0, tune = data.auto_tune_performance;
  constexpr int64_t usual_workers = 4, usual_reading = 8;
  // Beside the workers the plan, the device and the consumer have threads of their own.
  const auto cores = std::max<int64_t>(1, static_cast<int64_t>(available_cores()) / feed.mode.on_cores);
  const int64_t spare = on_gpu ? 3 : 0;
  loader.workers =
      static_cast<size_t>(data.num_workers.pick(tune ? std::max<int64_t>(1, cores - spare) : usual_workers));
  loader.reading_batches = static_cast<size_t>(data.prefetch_buffer_size.pick(usual_reading));
  loader.ring_batches = static_cast<size_t>(std::max<int64_t>(2, data.pipeline_buffer_size));
  loader.tune = tune;
  loader.min_workers = static_cast<size_t>(std::max<int64_t>(1, data.num_workers.low));
  loader.min_ring_batches = std::max<size_t>(2, loader.ring_batches / 2);
  // With fewer rows being read than there are workers some would have nothing to do; with more, pinned memory no
  // longer stays in the processor's cache.
  int64_t rows = std::numeric_limits<int64_t>::max();
  for (const Shape& shape : plan.shapes()) rows = std::min(rows, shape.batch_size);
  const int64_t enough = std::max(usual_reading, 2 * static_cast<int64_t>(loader.workers) / rows + 2);
  const IntRange reading = data.prefetch_buffer_size.automatic() ? IntRange{2, enough} : data.prefetch_buffer_size;
  loader.min_reading_batches = static_cast<size_t>(reading.low);
  loader.max_reading_batches = tune ? static_cast<size_t>(reading.high) : 0;
  if (!tune || !loader.native) return;
  if (!data.num_workers.fixed()) {
    feed.tuned.push_back(fmt::format("num_workers {}: {}{}", loader.workers,
                                     counted(static_cast<uint64_t>(cores), "core"),
                                     spare > 0 ? fmt::format(", {} left to other threads", spare) : ""));
  }
  if (!data.prefetch_buffer_size.fixed()) {
    feed.tuned.push_back(fmt::format("prefetch_buffer_size {}: {} to {} while it runs", loader.reading_batches,
                                     std::min(loader.min_reading_batches, loader.reading_batches),
                                     std::max(loader.max_reading_batches, loader.reading_batches)));
  }
}

}  // namespace

FreeMemory measure_free_memory(const Mode& mode) {
  return {mode.data_device < 0 ? 0 : device_memory(mode.data_device).free_bytes,
          host_memory().available_bytes / static_cast<uint64_t>(mode.processes)};
}

Feed plan_feed(const Config& config, const Corpus& corpus, const BatchPlan& plan, const Mode& mode) {
  const DataConfig& data = config.data;
  Feed feed;
  feed.mode = mode;
  feed.loader.native = data.use_native_loading;
  const bool made_on_gpu = feed.loader.native && data.prefetch_to_gpu;
  feed.loader.device = made_on_gpu ? mode.data_device : -1;
  feed.loader.pinned = !made_on_gpu && mode.model_device >= 0;
  feed.loader.overlap = data.optimize_cpu_gpu_overlap;
  if (mode.kind == Mode::Kind::multi_gpu) feed.start_delay_s = data.model_start_delay;
  choose_sizes(feed, data, plan);
  if (feed.loader.device >= 0 && data.auto_tune_performance) {
    FreeMemory free = measure_free_memory(mode);
    if (!data.enhanced_gpu_prefetch) free.gpu_bytes = 0;
    size_caches(feed, corpus, plan, free);
  }
  return feed;
}

void size_caches(Feed& feed, const Corpus& corpus, const BatchPlan& plan, const FreeMemory& free) {
  const uint64_t all = clips_bytes(corpus, plan);
  const uint64_t ring = feed.loader.ring_batches * max_batch_bytes(feed.loader, corpus, plan);
  const uint64_t left = free.gpu_bytes - std::min(free.gpu_bytes, ring);
  const bool own_card = feed.mode.data_device != feed.mode.model_device;
  feed.loader.gpu_cache_bytes = std::min(all, own_card ? left / 4 * 3 : left / 4);
  const bool separate = corpus.index.size() > 0 && !corpus.index.clip(0).place.part;
  const uint64_t rest = all - feed.loader.gpu_cache_bytes;
  if (!separate || rest == 0) return;
  feed.loader.host_cache_bytes = std::min(rest, free.host_bytes / 4);
}

std::vector<std::pair<std::string, std::string>> startup_facts(const Feed& feed, const Config& config,
                                                               const BatchPlan& plan, const DeviceView& devices) {
  const Mode& mode = feed.mode;
  const LoaderOptions& loader = feed.loader;
  const auto named = [&](int device) { return fmt::format("cuda:{} ({})", device, devices.name(device)); };
  std::vector<std::pair<std::string, std::string>> facts;
  const bool multi = mode.kind == Mode::Kind::multi_gpu;
  if (multi) {
    facts.emplace_back(
        "mode", fmt::format("Multi-GPU, data on {}, model on {}, batches cross {}", named(mode.data_device),
                            named(mode.model_device), mode.staged ? "through pinned host memory" : "by peer copy"));
  } else if (mode.kind == Mode::Kind::single_gpu) {
    facts.emplace_back("mode", fmt::format("Single-GPU buffered on {}", named(mode.model_device)));
  } else {
    facts.emplace_back("mode", "CPU");
  }
  if (!loader.native) {
    facts.emplace_back("buffer", "none");
  } else {
    const char* const where = loader.device >= 0 ? "in GPU memory" : loader.pinned ? "in pinned memory" : "in memory";
    facts.emplace_back(
        "buffer", fmt::format("{} batches {}{}", loader.ring_batches, where,
                              multi ? fmt::format(", and {} on the model's GPU", places_on_model_device(feed)) : ""));
  }
  facts.emplace_back("delay",
                     multi ? fmt::format("the model starts after {:.1f} s", feed.start_delay_s) : std::string("none"));
  if (config.data.pad_to_fixed_length) {
    std::vector<std::string> shapes;
    for (const Shape& shape : plan.shapes()) {
      shapes.push_back(fmt::format("{}x{}x{}", shape.batch_size, shape.text_length, shape.mel_frames));
    }
    facts.emplace_back("static shapes", fmt::format("on, {} (clips x tokens x mel frames)", fmt::join(shapes, " ")));
  } else {
    facts.emplace_back("static shapes", "off; every new shape is a retrace");
  }
  facts.emplace_back("loader", loader.native ? fmt::format("native, {}{}", counted(loader.workers, "worker"),
                                                           loader.overlap || loader.device < 0 ? "" : ", no overlap")
                                             : std::string("slow path, one clip at a time, nothing ahead of time; "
                                                           "data.use_native_loading is false"));
  if (loader.gpu_cache_bytes + loader.host_cache_bytes > 0) {
    facts.emplace_back("cache", fmt::format("clips up to {} in GPU memory and {} in pinned memory",
                                            gigabytes(loader.gpu_cache_bytes), gigabytes(loader.host_cache_bytes)));
  }
  for (const std::string& value : feed.tuned) facts.emplace_back("tuned", value);
  return facts;
}

std::unique_ptr<BatchSource> open_feed(const Feed& feed, const Corpus& corpus, const BatchPlan& plan) {
  const Mode& mode = feed.mode;
  std::unique_ptr<BatchSource> loader = open_loader(corpus, plan, feed.loader);
  const size_t bytes = max_batch_bytes(feed.loader, corpus, plan);
  if (mode.kind == Mode::Kind::multi_gpu) {
    const CrossingOptions options{places_on_model_device(feed), feed.start_delay_s, mode.model_device};
    GpuLinkOptions link;
    link.data_device = mode.data_device, link.model_device = mode.model_device;
    link.staged = mode.staged, link.overlap = feed.loader.overlap, link.place_bytes = bytes;
    return std::make_unique<Crossing>(std::move(loader), make_gpu_link(options, link), options);
  }
  if (mode.model_device >= 0 && feed.loader.device < 0) {
    return upload_when_taken(std::move(loader), mode.model_device, bytes);
  }
  return loader;
}

}  // namespace myxtts
