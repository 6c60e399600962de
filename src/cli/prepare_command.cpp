#include "base/error.h"
#include "base/files.h"
#include "base/workers.h"
#include "cli/session_console.h"
#include "corpus/pack.h"
#include "session/prepare.h"
#include "session/prepare_report.h"

#include <memory>

#include <CLI/CLI.hpp>

namespace myxtts {
namespace {

struct Options {
  std::string folder, html_file, vocabulary_file, pack_folder;
  bool deep = false, strict = false, pack_original = false;
  ConfigFlags flags;
};

void pack(const Corpus& corpus, const Options& options, const DataConfig& data, const Console& console) {
  ProgressBar bar(console, "packing", corpus.index.size());
  PackOptions pack_options;
  pack_options.original = options.pack_original;
  pack_options.threads = static_cast<size_t>(data.num_workers.pick(static_cast<int64_t>(available_cores())));
  pack_options.progress = [&](uint64_t done, uint64_t) { bar.update(done); };
  const PackReport report = pack_corpus(corpus, options.pack_folder, pack_options);
  console.info("packed {} clips, {:.1f} MB in {} shards, into {}", report.clips,
               static_cast<double>(report.bytes) / 1e6, report.shards.size(), options.pack_folder);
}

int prepare(const Options& options, const std::string& json_file, const Console& console) {
  const Config config = options.flags.load().values;
  SessionConsole session(console);
  const auto [corpus, advice] = prepare_corpus(options.folder, config, options.deep, session.listener());
  session.end_progress();
  const PrepareReport report(options.folder, corpus, config.data, advice);
  for (const std::string& line : report.lines()) console.info("{}", line);
  if (!json_file.empty()) write_file_atomically(json_file, report.to_json());
  if (!options.html_file.empty()) write_file_atomically(options.html_file, report.to_html());
  if (!options.vocabulary_file.empty()) write_file_atomically(options.vocabulary_file, corpus.vocabulary.to_json());
  const std::vector<RejectedClip>& rejected = corpus.index.summary().rejected;
  if (corpus.index.size() == 0) {
    fail("prepare", "{} has no clip that can be used: {}", options.folder, rejected.front().reason);
  }
  if (!options.pack_folder.empty()) pack(corpus, options, config.data, console);
  return options.strict && !rejected.empty() ? 1 : 0;
}

}  // namespace

void add_prepare_command(CLI::App& app, Program& program) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("prepare", "index and check a corpus before any training");
  command->add_option("DIR", options->folder, "folder with metadata.csv and wavs/, a .jsonl manifest, or tar shards")
      ->required()
      ->type_name("");
  command->add_flag("--deep", options->deep, "decode every clip, not only its header");
  command->add_flag("--strict", options->strict, "exit with 1 when a clip was rejected");
  command->add_option("--html", options->html_file, "write what was found as a page")->type_name("FILE");
  command->add_option("--save-vocabulary", options->vocabulary_file, "write the corpus's characters, for --vocabulary")
      ->type_name("FILE");
  command->add_option("--pack", options->pack_folder, "write the accepted clips as tar shards into this folder")
      ->type_name("DIR");
  command->add_flag("--pack-original", options->pack_original, "pack the clips' own bytes, not 16-bit samples");
  add_json_option(*command, program);
  add_config_flags(*command, options->flags, Command::prepare);
  command->callback([&program, options] {
    program.run = [&program, options](Console& console) { return prepare(*options, program.json_file, console); };
  });
}

}  // namespace myxtts
