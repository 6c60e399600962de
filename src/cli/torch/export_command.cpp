#include "base/error.h"
#include "base/files.h"
#include "cli/commands.h"
#include "synth/share_voice.h"

#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

struct Options {
  std::string checkpoint, vocoder, out, format = "safetensors";
};

int export_voice(const Options& options, const std::string& json_file, const Console& console) {
  if (options.checkpoint.empty()) reject_input("export", "no voice is named", way_out("give --checkpoint FILE"));
  if (options.out.empty()) reject_input("export", "no folder to write is named", way_out("give --out DIR"));
  if (options.format != "safetensors") {
    reject_input("export", "--format is '{}'", options.format, way_out("it may be safetensors"));
  }
  nlohmann::ordered_json json = {{"files", nlohmann::ordered_json::array()}};
  for (const SharedFile& file : share_voice(options.checkpoint, options.vocoder, options.out)) {
    console.info("{}: {:.1f} MB", file.path.string(), static_cast<double>(file.bytes) / 1e6);
    json["files"].push_back({{"path", file.path.string()}, {"bytes", file.bytes}});
  }
  if (!json_file.empty()) write_file_atomically(json_file, json.dump(2) + "\n");
  return 0;
}

}  // namespace

void add_export_command(CLI::App& app, Program& program) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("export", "write a voice for others to use");
  command->add_option("--checkpoint", options->checkpoint, "the voice, or a folder of checkpoints")->type_name("FILE");
  command->add_option("--vocoder", options->vocoder, "its vocoder; without: vocoder.safetensors beside the voice")
      ->type_name("FILE");
  command->add_option("--out", options->out, "folder to write")->type_name("DIR");
  command
      ->add_option("--format", options->format, "safetensors: bfloat16 weights that speak and that train --from takes")
      ->capture_default_str()
      ->type_name("NAME");
  add_json_option(*command, program);
  command->callback([&program, options] {
    program.run = [&program, options](Console& console) { return export_voice(*options, program.json_file, console); };
  });
}

}  // namespace myxtts
