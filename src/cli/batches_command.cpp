#include "artifacts/safetensors.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "cli/session_console.h"
#include "session/batch_range.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

struct Options {
  BatchRange range;
  bool validation = false;
  std::string quarantine_file, dump_folder;
  ConfigFlags flags;
};

void dump(const Batch& batch, const std::filesystem::path& file) {
  std::vector<TensorView> tensors;
  for (const Array& array : batch.arrays) {
    tensors.push_back(
        {array.name, array.dtype == DType::int32 ? "I32" : "F32", array.dims, {array.data, array.bytes()}});
  }
  write_safetensors(file, tensors);
}

std::string dims_text(const Array& array) { return fmt::format("[{}]", fmt::join(array.dims, ", ")); }

// Prints the batch's line; returns what --json says of it.
nlohmann::ordered_json show(const Batch& batch, const Corpus& corpus, const Console& console) {
  std::vector<std::string> ids;
  for (const uint32_t clip : batch.clips) {
    if (clip != no_clip) ids.push_back(corpus.clip(clip).id);
  }
  nlohmann::ordered_json replaced = nlohmann::ordered_json::array();
  for (const BadClip& bad : batch.replaced) {
    console.warn("{} is {}: {}", bad.id, bad.replaced_by.empty() ? "left out" : "replaced by " + bad.replaced_by,
                 bad.reason);
    replaced.push_back({{"id", bad.id}, {"by", bad.replaced_by}, {"path", bad.path.string()}, {"reason", bad.reason}});
  }
  const std::string hash = hash_hex(batch.hash());
  console.info("  {:>5}  {:<12} {:<17} {:<16}  {} ... {}", batch.index, dims_text(batch["tokens"]),
               dims_text(batch["mel"]), hash, ids.empty() ? "(none)" : ids.front(),
               ids.empty() ? "(none)" : ids.back());
  return {{"index", batch.index},
          {"shape", {{"text", batch["tokens"].dims}, {"mel", batch["mel"].dims}}},
          {"ids", ids},
          {"replaced", replaced},
          {"hash", hash}};
}

void make_folder(const std::string& folder) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) reject_input("batches", "--dump {}: {}", folder, problem.message());
}

int show_batches(const Options& options, const std::string& json_file, const Console& console) {
  options.range.validate();
  const Config config = options.flags.load().values;
  SessionConsole session(console);
  const Mode mode = choose_devices(config, session.listener());
  const PlannedCorpus planned = open_planned_corpus(
      "batches", config, options.validation ? CorpusPart::held_out : CorpusPart::training, session.listener(),
      /*crops=*/false, options.range.world_size);
  const Feed feed = plan_range(options.range, config, planned, mode);
  if (!feed.loader.native) {
    console.info("slow path: data.use_native_loading is false; one clip at a time, nothing ahead of time");
  }
  for (const auto& [name, text] : startup_facts(feed, config, planned.plan)) console.debug("{}: {}", name, text);
  if (!options.dump_folder.empty()) make_folder(options.dump_folder);
  std::optional<Quarantine> quarantine;
  if (!options.quarantine_file.empty()) quarantine.emplace(options.quarantine_file);
  const std::unique_ptr<BatchSource> source = open_feed(feed, planned.corpus, planned.plan);
  console.info("{} in {}; {} for the next epoch",
               counted(planned.plan.batches_per_epoch(), "batch per epoch", "batches per epoch"),
               counted(planned.plan.shapes().size(), "shape"),
               counted(planned.plan.clips_left_out(), "clip waits", "clips wait"));
  console.info("  {:>5}  {:<12} {:<17} {:<16}  {}", "batch", "text", "mel", "hash", "clips");
  nlohmann::ordered_json json;
  json["batches"] = nlohmann::ordered_json::array();
  for (uint64_t left = options.range.count_in(planned.plan); left > 0; --left) {
    const BatchLease batch = copy_to_host(*source->next());
    if (quarantine) quarantine->add(batch->replaced);
    if (!options.dump_folder.empty()) {
      dump(*batch, std::filesystem::path(options.dump_folder) / fmt::format("batch-{:08}.safetensors", batch->index));
    }
    json["batches"].push_back(show(*batch, planned.corpus, console));
  }
  if (!json_file.empty())
    write_file_atomically(json_file, json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  return 0;
}

}  // namespace

void add_batches_command(CLI::App& app, Program& program) {
  const auto options = std::make_shared<Options>();
  BatchRange& range = options->range;
  CLI::App* command = app.add_subcommand("batches", "show what the loader feeds");
  const auto number = [&](const char* flag, int64_t& value, const char* meaning) {
    command->add_option(flag, value, meaning)->capture_default_str()->type_name("N");
  };
  number("--num-batches", range.count, "how many");
  number("--epoch", range.epoch, "counted from 0");
  number("--start-batch", range.first, "first batch of the epoch to show");
  number("--rank", range.rank, "whose rows of the batch");
  number("--world-size", range.world_size, "how many ranks share a batch");
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
