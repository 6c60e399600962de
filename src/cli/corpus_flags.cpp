#include "cli/corpus_flags.h"

#include "base/files.h"
#include "base/workers.h"
#include "text/utf8.h"

#include <algorithm>
#include <memory>

namespace myxtts {

std::vector<std::string> corpus_keys(const std::vector<std::string>& more) {
  std::vector<std::string> keys = {"batch_size",  "max_text_length", "max_mel_frames", "shape_buckets",
                                   "num_workers", "metadata_format", "language",       "text_tokens",
                                   "vocabulary",  "trim_silence",    "overlong",       "mel_preset"};
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

LoaderOptions loader_options(const Config& config, const Console& console) {
  const DataConfig& data = config.data;
  const std::string& device = config.training.device;
  LoaderOptions options;
  options.native = data.use_native_loading;
  if (!options.native) {
    console.info("slow path: data.use_native_loading is false; one clip at a time, nothing ahead of time");
  }
  const bool on_gpu = device == "auto" ? options.native && device_count() > 0 : device != "cpu";
  if (on_gpu) options.device = parse_device(device == "auto" ? "cuda:0" : device);
  // Beside the workers the plan, the device and the consumer have threads of their own.
  const auto cores = static_cast<int64_t>(available_cores());
  options.workers = static_cast<size_t>(data.num_workers.pick(on_gpu ? std::max<int64_t>(1, cores - 3) : cores));
  if (!options.native) options.workers = 1;
  options.tune = data.auto_tune_performance && !data.num_workers.fixed();
  options.least_workers = static_cast<size_t>(std::max<int64_t>(1, data.num_workers.low));
  options.say = [&console](const std::string& sentence) { console.info("tuned: {}", sentence); };
  options.ring_batches = static_cast<size_t>(std::max<int64_t>(2, data.pipeline_buffer_size));
  options.reading_batches = static_cast<size_t>(data.prefetch_buffer_size.pick(8));
  return options;
}

Corpus open_corpus_loudly(const std::string& where, const Config& config, PrepareOptions options,
                          const Console& console) {
  std::set<char32_t> symbols;
  if (!config.data.vocabulary.empty()) {
    constexpr uint64_t longest = 1 << 22;
    symbols = Vocabulary::from_json(read_text_file(config.data.vocabulary, longest), config.data.vocabulary).symbols();
    options.symbols = &symbols;
  }
  options.validation = config.data.val_data.empty();
  options.say = [&](const std::string& sentence) { console.info("{}", sentence); };
  std::unique_ptr<ProgressBar> bar;
  options.progress = [&](uint64_t done, uint64_t total) {
    if (!bar) bar = std::make_unique<ProgressBar>(console, "checking", total);
    bar->update(done);
  };
  return open_corpus(where, config, options);
}

}  // namespace myxtts
