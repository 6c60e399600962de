#include "cli/commands.h"
#include "demo/demo_corpus.h"

#include <memory>

#include <CLI/CLI.hpp>

namespace myxtts {

void add_demo_data_command(CLI::App& app, Program& program) {
  struct Options {
    std::string folder;
    DemoCorpusSettings settings;
  };
  const auto options = std::make_shared<Options>();
  DemoCorpusSettings& settings = options->settings;
  CLI::App* command = app.add_subcommand("demo-data", "make a small corpus that a voice can learn");
  command->add_option("DIR", options->folder, "folder to write")->required()->type_name("");
  command->add_option("--clips", settings.clips, "how many clips")->capture_default_str()->type_name("N");
  command->add_option("--speakers", settings.speakers, "how many voices")->capture_default_str()->type_name("N");
  command->add_option("--seed", settings.seed, "one seed, one corpus")->capture_default_str()->type_name("N");
  command
      ->add_option("--languages,--language", settings.languages,
                   "of the texts: en, fa; by espeak-ng also de, es, fr, it, pt, ru")
      ->delimiter(',')
      ->capture_default_str()
      ->type_name("L,...");
  command->add_option("--texts", settings.texts, "what to say, one text per line, perhaps LANGUAGE|TEXT; for espeak-ng")
      ->type_name("FILE");
  command
      ->add_option("--voice", settings.voice,
                   "formant (built in), espeak-ng, or espeak-ng+VARIANT for one of its variants")
      ->capture_default_str()
      ->type_name("");
  command->add_option("--format", settings.format, "wav, flac, mp3 or ogg")->capture_default_str()->type_name("");
  command->add_option("--sample-rate", settings.sample_rate, "in Hz")->capture_default_str()->type_name("N");
  command->callback([&program, options] {
    program.run = [options](Console& console) {
      const DemoCorpusSettings& wanted = options->settings;
      DemoCorpusSummary made;
      {
        ProgressBar bar(console, "speaking", static_cast<uint64_t>(std::max(wanted.clips, 0)));
        made = make_demo_corpus(options->folder, wanted, [&](int done) { bar.update(static_cast<uint64_t>(done)); });
      }
      console.info("{}: {} clips, {:.1f} minutes, language {}, voice {}, {} at {} Hz, seed {}", options->folder,
                   made.clips, made.seconds / 60, fmt::join(wanted.languages, ","), wanted.voice, wanted.format,
                   wanted.sample_rate, wanted.seed);
      return 0;
    };
  });
}

}  // namespace myxtts
