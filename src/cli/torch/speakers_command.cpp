#include "base/counted.h"
#include "base/error.h"
#include "base/files.h"
#include "cli/commands.h"
#include "synth/speaker_file.h"
#include "synth/synthesizer.h"
#include "synth/voice_file.h"

#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

struct Options {
  std::string checkpoint, out;
  std::vector<std::string> clips, speakers;
};

int list(const Options& options, const std::string& json_file, const Console& console) {
  if (options.checkpoint.empty()) {
    reject_input("speakers", "no voice is named", way_out("myxtts speakers CHECKPOINT"));
  }
  const VoiceDescription voice = read_voice_description(find_voice(options.checkpoint));
  std::vector<std::string> names = voice.speakers;
  std::ranges::sort(names);
  for (const std::string& name : names) console.info("{}", name.empty() ? "(not named)" : name);
  if (voice.speakers.empty()) {
    console.info("one speaker without a name, in {}", voice.config.data.language);
  } else {
    console.info("{} in {}", counted(voice.speakers.size(), "speaker"), fmt::join(voice.languages, ", "));
  }
  if (!json_file.empty()) {
    const nlohmann::ordered_json json = {{"speakers", voice.speakers}, {"languages", voice.languages}};
    write_file_atomically(json_file, json.dump(2) + "\n");
  }
  return 0;
}

// The mean of all clips' and named speakers' vectors.
int add(const Options& options, const Console& console) {
  if (options.checkpoint.empty()) reject_input("speakers", "no voice is named", way_out("give --checkpoint FILE"));
  if (!options.out.ends_with(".speaker")) {
    reject_input("speakers", "--out is '{}'", options.out, way_out("name a file that ends in .speaker"));
  }
  if (options.clips.empty() && options.speakers.empty()) {
    reject_input("speakers", "there is nobody to add", way_out("name clips of someone, or --speaker NAME to mix"));
  }
  const Synthesizer voice(find_voice(options.checkpoint), -1);
  std::vector<std::vector<float>> vectors;
  if (!options.clips.empty()) vectors.push_back(voice.reference_vector({options.clips.begin(), options.clips.end()}));
  for (const std::string& name : options.speakers) vectors.push_back(voice.speaker_vector(name));
  write_speaker(options.out, {mixed(vectors), voice.fingerprint()});
  console.info("{}: {}, {}", options.out, counted(options.clips.size(), "clip"),
               counted(options.speakers.size(), "speaker"));
  return 0;
}

}  // namespace

void add_speakers_command(CLI::App& app, Program& program) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("speakers", "list the speakers of a voice, or save one from clips");
  command->add_option("CHECKPOINT", options->checkpoint, "the voice, or a folder of checkpoints")->type_name("");
  add_json_option(*command, program);
  command->require_subcommand(0, 1);
  CLI::App* added = command->add_subcommand("add", "save the voice of someone as a small file");
  added->add_option("CLIP", options->clips, "clips of that person; their mean is taken")->type_name("");
  added->add_option("--speaker", options->speakers, "speakers, by name or file, to mix in")->type_name("NAME...");
  added->add_option("--checkpoint", options->checkpoint, "the voice that is to speak")->type_name("FILE");
  added->add_option("--out", options->out, "file to write, NAME.speaker")->type_name("FILE");
  added->callback(
      [&program, options] { program.run = [options](Console& console) { return add(*options, console); }; });
  command->callback([&program, options, added] {
    if (added->parsed()) return;
    program.run = [&program, options](Console& console) { return list(*options, program.json_file, console); };
  });
}

}  // namespace myxtts
