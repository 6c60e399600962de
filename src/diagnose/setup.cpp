#include "diagnose/setup.h"

#include "base/workers.h"
#include "settings/settings.h"

namespace myxtts {

PipelineSetup setup_of(const Config& config, const Feed& feed, const Corpus& corpus) {
  PipelineSetup setup;
  setup.native = feed.loader.native;
  setup.model_on_gpu = feed.mode.model_device >= 0;
  setup.batches_on_gpu = feed.loader.device >= 0;
  setup.graph_mode = config.training.enable_graph_mode;
  setup.eager_debug = config.training.enable_eager_debug;
  setup.static_shapes = config.data.pad_to_fixed_length;
  setup.tuned = config.data.auto_tune_performance;
  setup.num_workers = value_text(*find_setting("data.num_workers"), config);
  setup.workers = feed.loader.native ? feed.loader.workers : 1;
  setup.cores = available_cores();
  setup.ring_batches = feed.loader.ring_batches;
  setup.reading_batches = feed.loader.reading_batches;
  uint64_t clips = 0, compressed = 0;
  for (size_t i = 0; i < corpus.index.size(); ++i) ++clips, compressed += corpus.index.clip(i).wav ? 0 : 1;
  setup.compressed_share = clips == 0 ? 0 : static_cast<double>(compressed) / static_cast<double>(clips);
  setup.separate_files = corpus.index.size() > 0 && !corpus.index.clip(0).place.part;
  return setup;
}

uint64_t bytes_of(const Corpus& corpus) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < corpus.index.size(); ++i) bytes += corpus.index.clip(i).place.bytes;
  return bytes;
}

}  // namespace myxtts
