#include "artifacts/safetensors.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/workers.h"
#include "cli/corpus_flags.h"
#include "plan/shapes.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

struct Options {
  int64_t batches = 5, epoch = 0, first = 0, rank = 0, world_size = 1;
  bool validation = false;
  std::string quarantine_file, dump_folder;
  ConfigFlags flags;
};

void dump(const Batch& batch, const std::filesystem::path& file) {
  const auto tensor = [](const char* name, const char* dtype, std::vector<int64_t> shape, const auto& values) {
    return TensorView{name, dtype, std::move(shape), std::as_bytes(std::span(values))};
  };
  const TensorView tensors[] = {tensor("tokens", "I32", {batch.rows, batch.text_length}, batch.tokens),
                                tensor("text_lengths", "I32", {batch.rows}, batch.text_lengths),
                                tensor("mel_lengths", "I32", {batch.rows}, batch.mel_lengths),
                                tensor("mel", "F32", {batch.rows, batch.mel_frames, batch.n_mels}, batch.mel)};
  write_safetensors(file, tensors);
}

int show_batches(const Options& options, const std::string& json_file, const Console& console) {
  if (options.batches < 1 || options.epoch < 0 || options.first < 0 || options.rank < 0 || options.world_size < 1) {
    reject_input("batches",
                 "--num-batches and --world-size must be at least 1, --epoch, --start-batch and --rank at least 0");
  }
  const ResolvedConfig config = options.flags.load();
  const DataConfig& data = config.values.data;
  if (data.train_data.empty()) reject_input("batches", "no corpus is named", way_out("give --train-data DIR"));
  const Mode mode = choose_mode_loudly(config.values, console);
  const Corpus corpus = open_corpus_loudly(data.train_data, config.values, {}, console);
  if (corpus.index.size() == 0)
    reject_input("batches", "{} has no clip that can be used", data.train_data, way_out("see `prepare`"));
  const ShapePlan shapes = plan_shapes(corpus.index.lengths(), data);
  const BatchPlan plan(options.validation ? shapes.validation : shapes.shapes,
                       static_cast<uint64_t>(config.values.training.seed),
                       options.validation ? BatchPlan::Visit::every_clip : BatchPlan::Visit::shuffled);
  if (plan.batches_per_epoch() == 0) {
    if (options.validation) {
      reject_input("batches", "{} has no clips held out for validation{}", data.train_data,
                   data.val_data.empty() ? "" : "; data.val_data is set, show it with --train-data");
    }
    reject_input("batches", "{} has {} clips, too few for a batch of {}", data.train_data, corpus.index.size(),
                 plan.shapes().front().batch_size, way_out("give a smaller --batch-size"));
  }
  const auto first = static_cast<uint64_t>(options.first), epoch = static_cast<uint64_t>(options.epoch);
  const auto rank = static_cast<uint64_t>(options.rank), world_size = static_cast<uint64_t>(options.world_size);
  if (first >= plan.batches_per_epoch()) {
    reject_input("batches", "--start-batch is {}", first,
                 way_out("an epoch has batches 0 to {}", plan.batches_per_epoch() - 1));
  }
  plan.batch(epoch, first, rank, world_size);  // throws what cannot be before anything is shown
  const uint64_t end = first + std::min(static_cast<uint64_t>(options.batches), plan.batches_per_epoch() - first);
  Feed feed = plan_feed(config.values, corpus, plan, mode);
  feed.loader.epoch = epoch, feed.loader.index = first;
  feed.loader.rank = rank, feed.loader.world_size = world_size;
  // No more than is shown; nothing comes twice.
  feed.loader.ring_batches = std::min<size_t>(feed.loader.ring_batches, std::max<uint64_t>(2, end - first));
  feed.loader.gpu_cache_bytes = feed.loader.host_cache_bytes = 0;
  if (!feed.loader.native) {
    console.info("slow path: data.use_native_loading is false; one clip at a time, nothing ahead of time");
  }
  for (const auto& [name, text] : startup_facts(feed, config.values, plan)) console.debug("{}: {}", name, text);
  const std::unique_ptr<BatchSource> loader = open_feed(feed, corpus, plan);
  console.info("{} in {}; {} for the next epoch",
               counted(plan.batches_per_epoch(), "batch an epoch", "batches an epoch"),
               counted(plan.shapes().size(), "shape"), counted(plan.clips_left_out(), "clip waits", "clips wait"));
  console.info("  {:>5}  {:<12} {:<17} {:<16}  {}", "batch", "text", "mel", "hash", "clips");
  if (!options.dump_folder.empty()) {
    std::error_code problem;
    std::filesystem::create_directories(options.dump_folder, problem);
    if (problem) reject_input("batches", "--dump {}: {}", options.dump_folder, problem.message());
  }
  std::optional<Quarantine> quarantine;
  if (!options.quarantine_file.empty()) quarantine.emplace(options.quarantine_file);
  nlohmann::ordered_json json;
  json["batches"] = nlohmann::ordered_json::array();
  for (uint64_t index = first; index < end; ++index) {
    const Batch batch = copy_to_host(loader->next(), mode.model_device);
    std::vector<std::string> ids;
    for (const uint32_t clip : batch.clips) {
      if (clip != no_clip) ids.push_back(corpus.clip(clip).id);
    }
    if (quarantine) quarantine->add(batch.replaced);
    nlohmann::ordered_json replaced = nlohmann::ordered_json::array();
    for (const BadClip& bad : batch.replaced) {
      console.warn("{} is replaced by {}: {}", bad.id, bad.replaced_by, bad.reason);
      replaced.push_back(
          {{"id", bad.id}, {"by", bad.replaced_by}, {"path", bad.path.string()}, {"reason", bad.reason}});
    }
    const std::string hash = hash_hex(batch.hash());
    if (!options.dump_folder.empty()) {
      dump(batch, std::filesystem::path(options.dump_folder) / fmt::format("batch-{:08}.safetensors", index));
    }
    console.info("  {:>5}  {:<12} {:<17} {:<16}  {} ... {}", index,
                 fmt::format("[{}, {}]", batch.rows, batch.text_length),
                 fmt::format("[{}, {}, {}]", batch.rows, batch.mel_frames, batch.n_mels), hash,
                 ids.empty() ? "(none)" : ids.front(), ids.empty() ? "(none)" : ids.back());
    json["batches"].push_back(
        {{"index", index},
         {"shape", {{"text", {batch.rows, batch.text_length}}, {"mel", {batch.rows, batch.mel_frames, batch.n_mels}}}},
         {"ids", ids},
         {"replaced", replaced},
         {"hash", hash}});
  }
  if (!json_file.empty())
    write_file_atomically(json_file, json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  return 0;
}

}  // namespace

void add_batches_command(CLI::App& app, Program& program) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("batches", "show what the loader feeds");
  command->add_option("--num-batches", options->batches, "how many")->capture_default_str()->type_name("N");
  command->add_option("--epoch", options->epoch, "counted from 0")->capture_default_str()->type_name("N");
  command->add_option("--start-batch", options->first, "first batch of the epoch to show")
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--rank", options->rank, "whose rows of the batch")->capture_default_str()->type_name("N");
  command->add_option("--world-size", options->world_size, "how many share a batch")
      ->capture_default_str()
      ->type_name("N");
  command->add_flag("--validation", options->validation, "the clips held out, each once, instead of those to train on");
  command->add_option("--quarantine", options->quarantine_file, "append clips that had to be replaced to this file")
      ->type_name("FILE");
  command->add_option("--dump", options->dump_folder, "write each batch to this folder as a safetensors file")
      ->type_name("DIR");
  add_json_option(*command, program);
  add_config_flags(*command, options->flags, Command::batches);
  command->callback([&program, options] {
    program.run = [&program, options](Console& console) { return show_batches(*options, program.json_file, console); };
  });
}

}  // namespace myxtts
