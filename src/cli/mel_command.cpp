#include "artifacts/png.h"
#include "audio/clip.h"
#include "audio/resample.h"
#include "audio/wav.h"
#include "base/error.h"
#include "base/files.h"
#include "base/workers.h"
#include "cli/commands.h"
#include "features/cpu/griffin_lim.h"
#include "features/mel.h"
#include "features/mel_gpu.h"
#include "features/npy.h"
#include "session/vocode.h"

#include <memory>

#include <CLI/CLI.hpp>

namespace myxtts {
namespace {

struct Options {
  std::string in, out, png, resynth, vocoder, preset, config, device = "cpu";
  bool list = false;
};

int list_presets(const Console& console) {
  for (const MelSpec& preset : mel_presets()) console.info("{:<12} {}", preset.name, preset.to_string());
  return 0;
}

Mel on_cpu(const MelSpec& spec, const std::filesystem::path& path) {
  const Clip clip = read_clip(path);
  return MelCpu(spec).compute(resample(clip.samples, clip.sample_rate, spec.sample_rate));
}

Mel on_gpu(const MelSpec& spec, const std::filesystem::path& path, int device) {
  const RawClip raw = read_raw_clip(path);
  const WavLayout& layout = raw.layout;
  return mel_on_gpu(spec, device, raw.bytes,
                    {0, static_cast<uint32_t>(layout.frames), layout.sample_rate, layout.channels, layout.format});
}

// What can be heard of a clip that has become a mel: the most that a voice learning from such mels can reach.
std::vector<float> resynthesise(const Options& options, const MelSpec& spec, const Mel& mel) {
  std::vector<float> samples = options.vocoder.empty()
                                   ? griffin_lim(spec, mel.values, mel.frames, {.threads = available_cores()})
                                   : vocode(options.vocoder, spec, mel);
  if (samples.empty())
    fail("mel", "{} is too short for --resynth: its {} frames hold no sample", options.in, mel.frames);
  return samples;
}

void write_sound(const Options& options, const MelSpec& spec, const std::vector<float>& sound, const Console& console) {
  write_wav(options.resynth, sound, spec.sample_rate);
  console.info("{}: {:.2f} s at {} Hz, made from that mel by {}", options.resynth,
               static_cast<double>(sound.size()) / spec.sample_rate, spec.sample_rate,
               options.vocoder.empty() ? "Griffin-Lim" : options.vocoder);
}

void write_picture(const Options& options, const Mel& mel, const Console& console) {
  const int frames = static_cast<int>(mel.frames), bands = mel.n_mels;
  std::vector<float> rows(mel.values.size());  // a row for each band
  for (int frame = 0; frame < frames; ++frame) {
    for (int band = 0; band < bands; ++band)
      rows[static_cast<size_t>(band) * frames + frame] = mel.values[static_cast<size_t>(frame) * bands + band];
  }
  write_file_atomically(options.png, make_png_heatmap(rows, bands, frames, {.scale = 2}));
  console.info("{}: that mel as a picture", options.png);
}

MelSpec spec_of(const Options& options) {
  ResolvedConfig config = load_config(options.config, "", {});
  if (!options.preset.empty()) config.values.data.mel_preset = options.preset;
  return resolve_mel_spec(config.values);
}

// Makes a log-mel of any origin audible.
int resynthesise_file(const Options& options, const Console& console) {
  if (options.resynth.empty() || !options.out.empty() || !options.png.empty()) {
    reject_input("mel", "{} is a mel already: it takes --resynth FILE, no OUT and no --png", options.in);
  }
  const MelSpec spec = spec_of(options);
  const Matrix matrix = read_npy(options.in);
  if (matrix.columns != spec.n_mels) {
    reject_input("mel", "{} has {} bands, but {} has {}", options.in, matrix.columns, spec.name, spec.n_mels,
                 way_out("name the --preset that it was made with"));
  }
  write_sound(options, spec, resynthesise(options, spec, {matrix.rows, spec.n_mels, matrix.values}), console);
  return 0;
}

int compute(const Options& options, const Console& console) {
  if (options.in.ends_with(".npy")) return resynthesise_file(options, console);
  if (options.in.empty() || options.out.empty()) {
    reject_input("mel", "name an audio file and an .npy file, or --list", way_out("see 'myxtts mel --help'"));
  }
  if (!options.vocoder.empty() && options.resynth.empty()) {
    reject_input("mel", "--vocoder is for --resynth", way_out("add --resynth FILE, or leave it out"));
  }
  if (options.resynth == options.out) reject_input("mel", "OUT and --resynth name the same file, {}", options.out);
  const MelSpec spec = spec_of(options);
  const AudioInfo info = read_clip_info(ClipPlace(options.in));
  if (info.frames == 0) fail_as(ErrorCode::unreadable, "mel", "{} has no samples (at byte {})", options.in, at_byte(0));
  const Mel mel =
      options.device == "cpu" ? on_cpu(spec, options.in) : on_gpu(spec, options.in, parse_device(options.device));
  const std::vector<float> sound = options.resynth.empty() ? std::vector<float>() : resynthesise(options, spec, mel);
  write_npy(options.out, mel.values, mel.frames, mel.n_mels);
  console.info("{}: [{}, {}] float32, preset {}, {:.2f} s, on {}{}", options.out, mel.frames, mel.n_mels, spec.name,
               info.seconds(), options.device,
               info.sample_rate == spec.sample_rate
                   ? ""
                   : fmt::format(", resampled from {} to {} Hz", info.sample_rate, spec.sample_rate));
  if (!options.png.empty()) write_picture(options, mel, console);
  if (!sound.empty()) write_sound(options, spec, sound, console);
  return 0;
}

}  // namespace

void add_mel_command(CLI::App& app, Program& program) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("mel", "one file's log-mel, float32 [frames, n_mels], as .npy");
  command->add_option("IN", options->in, "audio file, or a mel as .npy for --resynth")->type_name("");
  command->add_option("OUT", options->out, "file to write, .npy")->type_name("");
  command->add_option("--png", options->png, "write the mel as a picture")->type_name("FILE");
  command->add_option("--resynth", options->resynth, "write what the mel sounds like, as .wav")->type_name("FILE");
  command->add_option("--vocoder", options->vocoder, "what makes it audible; without: Griffin-Lim")->type_name("FILE");
  command->add_option("--preset", options->preset, "convention [hifigan]; --list names them")->type_name("NAME");
  command->add_option("--config", options->config, "YAML file: mel settings and presets of your own")
      ->type_name("FILE");
  command->add_option("--device", options->device, "cpu or cuda:N")->capture_default_str()->type_name("");
  command->add_flag("--list", options->list, "name the presets");
  command->callback([&program, options] {
    program.run = [options](Console& console) {
      return options->list ? list_presets(console) : compute(*options, console);
    };
  });
}

}  // namespace myxtts
