#include "audio/wav.h"
#include "base/error.h"
#include "base/files.h"
#include "cli/commands.h"
#include "cli/torch/patience.h"
#include "device/device.h"
#include "synth/synthesizer.h"
#include "synth/voice_file.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <iterator>
#include <memory>
#include <sstream>

#include <CLI/CLI.hpp>
#include <unistd.h>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

struct Options {
  std::string checkpoint, text, text_file, out, device = "cpu";
  std::string vocoder, solver = "midpoint";
  std::string speaker, language;
  std::vector<std::string> references;
  bool stream = false;
  SynthesisOptions how;
};

std::vector<std::string> read_lines(const std::string& name) {
  constexpr uint64_t longest = 1 << 26;
  std::string all;
  if (name == "-") {
    all.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    all = read_text_file(name, longest);
  }
  std::vector<std::string> lines;
  std::istringstream in(all);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.find_first_not_of(" \t") != std::string::npos) lines.push_back(line);
  }
  return lines;
}

// out.wav -> out-001.wav for the first of many.
fs::path numbered(const fs::path& out, size_t number) {
  return out.parent_path() / fmt::format("{}-{:03}{}", out.stem().string(), number, out.extension().string());
}

FlowSolver solver_named(const std::string& name) {
  if (name == "euler") return FlowSolver::euler;
  if (name == "midpoint") return FlowSolver::midpoint;
  reject_input("synth", "--solver is '{}'", name, way_out("it may be euler or midpoint"));
}

// What is wrong with the options alone, before anything is opened.
void check(const Options& options) {
  if (options.text.empty() == options.text_file.empty()) {
    reject_input("synth", "give either --text or --text-file (a file with one text per line, or - for standard input)");
  }
  if (options.stream && !options.out.empty()) {
    reject_input("synth", "--out and --stream both say where the sound goes", way_out("give one"));
  }
  if (!options.stream && options.out.empty()) {
    reject_input("synth", "no file to write is named", way_out("give --out FILE.wav, or --stream for standard output"));
  }
  if (options.checkpoint.empty()) reject_input("synth", "no voice is named", way_out("give --checkpoint FILE"));
  if (!options.speaker.empty() && !options.references.empty()) {
    reject_input("synth", "--speaker and --reference both say who speaks", way_out("give one"));
  }
}

Speaking speaking_as(const Synthesizer& voice, const Options& options) {
  Speaking as;
  as.language = options.language;
  if (!options.speaker.empty()) as.speaker = voice.speaker_vector(options.speaker);
  if (!options.references.empty()) {
    as.speaker = voice.reference_vector({options.references.begin(), options.references.end()});
  }
  if (options.how.guidance > 0 && voice.description().speakers.empty()) {
    reject_input("synth", "--guidance needs a voice with speakers", way_out("leave it out"));
  }
  return as;
}

// False once nobody reads any more.
bool write_to_stdout(const std::vector<std::byte>& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t written = ::write(STDOUT_FILENO, bytes.data() + at, bytes.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EPIPE) return false;
    if (written < 0) fail("synth", "standard output cannot be written: {}", std::strerror(errno));
    at += static_cast<size_t>(written);
  }
  return true;
}

// Standard output gets samples and nothing else.
int stream(const Synthesizer& voice, const std::vector<std::string>& texts, const SynthesisOptions& how,
           const Speaking& as) {
  std::signal(SIGPIPE, SIG_IGN);
  fmt::print(stderr, "raw PCM: 16-bit little-endian, mono, {} Hz\n", voice.sample_rate());
  for (const std::string& text : texts) {
    Speech speech = voice.begin(text, how, as);
    for (std::vector<float> samples = speech.next(); !samples.empty(); samples = speech.next()) {
      std::vector<std::byte> bytes;
      append_pcm_16(bytes, samples);
      if (!write_to_stdout(bytes)) return 0;
    }
  }
  return 0;
}

int write_files(const Synthesizer& voice, const std::vector<std::string>& texts, const SynthesisOptions& how,
                const Speaking& as, const Options& options, const Console& console) {
  const bool many = !options.text_file.empty();
  std::unique_ptr<ProgressBar> bar;
  if (texts.size() > 1) bar = std::make_unique<ProgressBar>(console, "speaking", texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::vector<float> samples = voice.say(texts[i], how, as);
    const fs::path file = many ? numbered(options.out, i + 1) : fs::path(options.out);
    write_wav(file, samples, voice.sample_rate());
    if (bar) bar->update(i + 1);
    if (texts.size() <= 10) {
      console.info("{}: {:.2f} s", file.string(), static_cast<double>(samples.size()) / voice.sample_rate());
    }
  }
  if (texts.size() > 10)
    console.info("{} files, {} to {}", texts.size(), numbered(options.out, 1).string(),
                 numbered(options.out, texts.size()).string());
  return 0;
}

int synthesise(const Options& options, const Console& console) {
  check(options);
  SynthesisOptions how = options.how;
  how.solver = solver_named(options.solver);
  check_options(how);
  if (options.device == "cpu") wait_without_spinning();
  const std::vector<std::string> texts =
      options.text_file.empty() ? std::vector{options.text} : read_lines(options.text_file);
  if (texts.empty()) reject_input("synth", "{} holds no text", options.text_file);
  const Synthesizer voice(find_voice(options.checkpoint), options.device == "cpu" ? -1 : parse_device(options.device),
                          options.vocoder);
  const Speaking as = speaking_as(voice, options);
  return options.stream ? stream(voice, texts, how, as) : write_files(voice, texts, how, as, options, console);
}

}  // namespace

void add_synth_command(CLI::App& app, Program& program) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("synth", "speak a text with a trained voice");
  command->add_option("--checkpoint", options->checkpoint, "the voice, or a folder of checkpoints (its best one)")
      ->type_name("FILE");
  command->add_option("--text", options->text, "what to say")->type_name("TEXT");
  command
      ->add_option("--text-file", options->text_file,
                   "one text per line, - for standard input; writes OUT-001.wav and so on")
      ->type_name("FILE");
  command->add_option("--out", options->out, "WAV file to write")->type_name("FILE");
  command->add_flag("--stream", options->stream,
                    "write raw PCM (16-bit little-endian mono) to standard output as it is made");
  command->add_option("--speaker", options->speaker, "a speaker of the voice, or a .speaker file")->type_name("NAME");
  command->add_option("--language", options->language, "language of the text; otherwise the voice's own")
      ->type_name("L");
  command
      ->add_option("--reference", options->references, "clips of someone whose voice is to be taken; no texts needed")
      ->type_name("CLIP...");
  command->add_option("--guidance", options->how.guidance, "0 and more: how far to exaggerate the speaker")
      ->capture_default_str()
      ->type_name("X");
  command->add_option("--steps", options->how.steps, "function evaluations of the flow; more is finer and slower")
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--solver", options->solver, "solver of the flow: euler or midpoint")
      ->capture_default_str()
      ->type_name("NAME");
  command->add_option("--sway", options->how.sway, "-1 to 1; negative: more evaluations at the flow's beginning")
      ->capture_default_str()
      ->type_name("X");
  command->add_option("--temperature", options->how.temperature, "scale of the initial noise; 0 is the plainest")
      ->capture_default_str()
      ->type_name("X");
  command->add_option("--speed", options->how.speed, "2 is twice as fast")->capture_default_str()->type_name("X");
  command->add_option("--seed", options->how.seed, "random seed")->capture_default_str()->type_name("N");
  command
      ->add_option("--vocoder", options->vocoder,
                   "a trained vocoder, or a HiFi-GAN generator V1; otherwise vocoder.safetensors beside the voice, or "
                   "Griffin-Lim")
      ->type_name("FILE");
  command->add_option("--device", options->device, "cpu or cuda:N")->capture_default_str()->type_name("");
  command->callback(
      [&program, options] { program.run = [options](Console& console) { return synthesise(*options, console); }; });
}

}  // namespace myxtts
