#include "base/clock.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/files.h"
#include "base/workers.h"
#include "cli/commands.h"
#include "cli/torch/patience.h"
#include "device/device.h"
#include "diagnose/oscillation.h"
#include "synth/synthesizer.h"
#include "synth/voice_file.h"

#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

struct Options {
  std::string checkpoint = "base", vocoder, language, device = "cpu";
  std::string text = "The quick brown fox jumps over the lazy dog, and then it rests for a while.";
  int repeats = 20;
};

struct Measured {
  std::vector<double> whole_s, tokens_s, mel_s, waveform_s;
  double sound_s = 0;
};

Measured measure(const Synthesizer& voice, const Options& options) {
  Measured measured;
  Speaking as;
  as.language = options.language;
  constexpr int warm_up = 3;
  for (int i = 0; i < warm_up + options.repeats; ++i) {
    SpeakingTimes times;
    const Stopwatch watch;
    const std::vector<float> samples = voice.say(options.text, {}, as, &times);
    const double whole = watch.seconds();
    measured.sound_s = static_cast<double>(samples.size()) / voice.sample_rate();
    if (i < warm_up) continue;
    measured.whole_s.push_back(whole), measured.tokens_s.push_back(times.tokens);
    measured.mel_s.push_back(times.mel), measured.waveform_s.push_back(times.waveform);
  }
  return measured;
}

int bench_synth(const Options& options, const std::string& json_file, const Console& console) {
  if (options.repeats < 1) reject_input("bench", "--repeats is {}", options.repeats, way_out("give at least 1"));
  if (options.device == "cpu") wait_without_spinning();
  const int device = options.device == "cpu" ? -1 : parse_device(options.device);
  const Synthesizer voice(find_voice(options.checkpoint), device, options.vocoder);
  const Measured measured = measure(voice, options);
  const SummaryStats whole = summarize(measured.whole_s);
  const double tokens = summarize(measured.tokens_s).p50, mel = summarize(measured.mel_s).p50,
               waveform = summarize(measured.waveform_s).p50, parts = tokens + mel + waveform;
  const double figure = measured.sound_s / whole.p50;
  const std::string name =
      device >= 0 ? device_name(device) : "CPU, " + counted(static_cast<uint64_t>(available_cores()), "core");
  const std::string what = fmt::format("text to samples, {:.2f} s of sound", measured.sound_s);
  console.info("{}, on {}", what, name);
  console.info("  {:>12.1f} x real time  ({:.1f} ms, median of {}, cv {:.1f} %)", figure, whole.p50 * 1e3,
               measured.whole_s.size(), 100 * whole.cv);
  console.info("  tokens {:.1f} ms ({:.0f} %), mel {:.1f} ms ({:.0f} %), waveform {:.1f} ms ({:.0f} %)", tokens * 1e3,
               100 * tokens / parts, mel * 1e3, 100 * mel / parts, waveform * 1e3, 100 * waveform / parts);
  if (!json_file.empty()) {
    const nlohmann::ordered_json json = {{"what", what},
                                         {"device", name},
                                         {"text", options.text},
                                         {"figure", figure},
                                         {"unit", "x real time"},
                                         {"ms", whole.p50 * 1e3},
                                         {"repeats", measured.whole_s.size()},
                                         {"cv", whole.cv},
                                         {"tokens_ms", tokens * 1e3},
                                         {"mel_ms", mel * 1e3},
                                         {"waveform_ms", waveform * 1e3}};
    write_file_atomically(json_file, json.dump(2) + "\n");
  }
  return 0;
}

}  // namespace

void add_bench_synth(CLI::App& bench, Program& program) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = bench.add_subcommand("synth", "a voice, from text to samples, with the share of each part");
  const auto add = [&](const char* flag, auto& value, const char* meaning, const char* type) {
    return command->add_option(flag, value, meaning)->capture_default_str()->type_name(type);
  };
  add("--checkpoint", options->checkpoint, "the voice, or a folder of checkpoints (its best one)", "FILE");
  add("--vocoder", options->vocoder, "otherwise vocoder.safetensors beside the voice, or Griffin-Lim", "FILE");
  add("--text", options->text, "what to say", "TEXT");
  add("--language", options->language, "language of the text; otherwise the voice's own", "L");
  add("--device", options->device, "cpu or cuda:N", "");
  add("--repeats", options->repeats, "measurements", "N");
  add_json_option(*command, program);
  command->callback([&program, options] {
    program.run = [&program, options](Console& console) { return bench_synth(*options, program.json_file, console); };
  });
}

}  // namespace myxtts
