#include "base/error.h"
#include "base/files.h"
#include "cli/commands.h"
#include "synth/export/sherpa_onnx.h"
#include "synth/share_voice.h"

#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

struct Options {
  std::string checkpoint, vocoder, out, format = "sherpa-onnx";
  std::string precision, speaker, language, words, espeak_data;
  std::optional<int64_t> steps;
};

// Options of --format sherpa-onnx alone.
void reject_for_safetensors(const Options& options) {
  const std::pair<const char*, bool> given[] = {
      {"--precision", !options.precision.empty()}, {"--speaker", !options.speaker.empty()},
      {"--language", !options.language.empty()},   {"--steps", options.steps.has_value()},
      {"--words", !options.words.empty()},         {"--espeak-data", !options.espeak_data.empty()}};
  for (const auto& [name, is_given] : given) {
    if (is_given) {
      reject_input("export", "{} is for --format sherpa-onnx, and safetensors takes all of a voice", name,
                   way_out("leave it out"));
    }
  }
}

std::vector<SharedFile> write(const Options& options) {
  if (options.format == "safetensors") {
    reject_for_safetensors(options);
    return share_voice(options.checkpoint, options.vocoder, options.out);
  }
  SherpaOnnxExport what;
  what.voice = options.checkpoint, what.vocoder = options.vocoder, what.folder = options.out;
  what.speaker = options.speaker, what.language = options.language;
  what.words = options.words, what.espeak_data = options.espeak_data;
  if (!options.precision.empty()) what.precision = precision_named(options.precision);
  if (options.steps) what.steps = *options.steps;
  return export_sherpa_onnx(what);
}

int export_voice(const Options& options, const std::string& json_file, const Console& console) {
  if (options.checkpoint.empty()) reject_input("export", "no voice is named", way_out("give --checkpoint FILE"));
  if (options.out.empty()) reject_input("export", "no folder to write is named", way_out("give --out DIR"));
  if (options.format != "safetensors" && options.format != "sherpa-onnx") {
    reject_input("export", "--format is '{}'", options.format, way_out("it may be sherpa-onnx or safetensors"));
  }
  nlohmann::ordered_json json = {{"files", nlohmann::ordered_json::array()}};
  for (const SharedFile& file : write(options)) {
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
      ->add_option("--format", options->format,
                   "sherpa-onnx: what that runtime loads; safetensors: bfloat16 weights that speak and that train "
                   "--from takes")
      ->capture_default_str()
      ->type_name("NAME");
  command->add_option("--precision", options->precision, "of the ONNX weights: float32 (default), float16 or int8")
      ->type_name("NAME");
  command
      ->add_option("--speaker", options->speaker,
                   "who alone speaks: a speaker of the voice, or a .speaker file; otherwise all, by `sid`")
      ->type_name("NAME");
  command->add_option("--language", options->language, "of the exported voice; otherwise the voice's own")
      ->type_name("L");
  command->add_option("--steps", options->steps, "function evaluations of the flow; otherwise 4, as in synth")
      ->type_name("N");
  command->add_option("--words", options->words, "texts, one per line, whose words make a lexicon for the runtime")
      ->type_name("FILE");
  command->add_option("--espeak-data", options->espeak_data, "a folder of espeak-ng's data to copy; it is GPL")
      ->type_name("DIR");
  add_json_option(*command, program);
  command->callback([&program, options] {
    program.run = [&program, options](Console& console) { return export_voice(*options, program.json_file, console); };
  });
}

}  // namespace myxtts
