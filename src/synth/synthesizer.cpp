#include "synth/synthesizer.h"

#include "audio/clip.h"
#include "audio/resample.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/workers.h"
#include "features/cpu/griffin_lim.h"
#include "features/mel.h"
#include "features/mel_spec.h"
#include "model/torch_device.h"
#include "model/voice.h"
#include "synth/joins.h"
#include "synth/speaker_file.h"
#include "synth/vocoder_file.h"
#include "synth/voice_file.h"
#include "text/clauses.h"
#include "text/sentences.h"

#include <algorithm>

#include <ATen/ATen.h>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

// The one beside the voice, where none is named.
fs::path default_vocoder(const fs::path& checkpoint) {
  const fs::path beside = checkpoint.parent_path() / "vocoder.safetensors";
  return fs::exists(beside) ? beside : fs::path();
}

}  // namespace

void check_options(const SynthesisOptions& options) {
  if (options.steps < 1 || options.steps > 1000) {
    reject_input("synth", "--steps is {}", options.steps, way_out("it must be from 1 to 1000"));
  }
  if (!(options.sway >= -1 && options.sway <= 1)) {
    reject_input("synth", "--sway is {}", options.sway, way_out("it must be from -1 to 1"));
  }
  if (!(options.speed >= 0.1 && options.speed <= 10)) {
    reject_input("synth", "--speed is {}", options.speed, way_out("it must be from 0.1 to 10"));
  }
  if (!(options.temperature >= 0 && options.temperature <= 10)) {
    reject_input("synth", "--temperature is {}", options.temperature, way_out("it must be from 0 to 10"));
  }
  if (!(options.guidance >= 0 && options.guidance <= 10)) {
    reject_input("synth", "--guidance is {}", options.guidance, way_out("it must be from 0 to 10"));
  }
}

struct Synthesizer::State {
  State(const fs::path& checkpoint, at::Device device, const fs::path& vocoder_file)
      : description(read_voice_description(checkpoint)),
        mel(resolve_mel_spec(description.config)),
        voice(description.spec()),
        weights(make_weights(voice.layout(), load_ema_weights(checkpoint, voice.layout()).to(device), false)) {
    const fs::path file = vocoder_file.empty() ? default_vocoder(checkpoint) : vocoder_file;
    if (!file.empty()) vocoder = open_vocoder(file, mel, device);
  }

  VoiceDescription description;
  MelSpec mel;
  Voice voice;
  Weights weights;
  std::unique_ptr<WaveformMaker> vocoder;  // null: Griffin-Lim
};

Synthesizer::Synthesizer(const fs::path& checkpoint, int device, const fs::path& vocoder)
    : state_(std::make_unique<State>(checkpoint, torch_device(device), vocoder)) {}

Synthesizer::~Synthesizer() = default;

const VoiceDescription& Synthesizer::description() const { return state_->description; }
int Synthesizer::sample_rate() const { return state_->mel.sample_rate; }

namespace {

void check_conditioned(const VoiceDescription& voice) {
  if (voice.speakers.empty()) {
    reject_input("synth", "the voice has one speaker, and cannot speak as another",
                 way_out("train on a corpus with several speakers"));
  }
}

// Mel [frames, n_mels] of a whole clip, at the voice's rate.
at::Tensor mel_of_clip(const MelSpec& spec, const fs::path& path) {
  const Clip clip = read_clip(path);
  const Mel mel = MelCpu(spec).compute(resample(clip.samples, clip.sample_rate, spec.sample_rate));
  if (mel.frames < reference_window) reject_input("synth", "{} is too short for a reference", path.string());
  return at::tensor(mel.values).view({mel.frames, mel.n_mels});
}

std::vector<float> to_vector(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.to(at::kCPU, at::kFloat).contiguous();
  return {plain.const_data_ptr<float>(), plain.const_data_ptr<float>() + plain.numel()};
}

}  // namespace

std::string Synthesizer::fingerprint() const {
  check_conditioned(state_->description);
  const VoiceDescription& voice = state_->description;
  return hash_hex(hash_text(fmt::format("{}\n{}\n{}\n{}", voice.config.model.size, voice.vocabulary.to_json(),
                                        fmt::join(voice.speakers, "\n"), fmt::join(voice.languages, "\n"))));
}

std::vector<float> Synthesizer::speaker_vector(const std::string& name) const {
  check_conditioned(state_->description);
  if (name.ends_with(".speaker")) {
    SpeakerFile file = read_speaker(name);
    if (file.voice != fingerprint() || file.vector.size() != condition_width) {
      reject_input("synth", "{} was made with another voice", name,
                   way_out("make it again from its clips with `myxtts speakers add`"));
    }
    return file.vector;
  }
  return to_vector(state_->voice.speaker_vector(state_->weights, speaker_number(state_->description, name)));
}

// Clips are cut into stretches as long as those of training.
std::vector<float> Synthesizer::reference_vector(const std::vector<fs::path>& clips) const {
  check_conditioned(state_->description);
  at::Tensor sum = at::zeros({condition_width});
  for (const fs::path& path : clips) {
    const at::Tensor mel = mel_of_clip(state_->mel, path);
    const int64_t frames = mel.size(0), stretches = std::max<int64_t>(1, frames / reference_frames);
    for (int64_t i = 0; i < stretches; ++i) {
      const int64_t first = i * frames / stretches, length = std::min(frames - first, reference_frames);
      sum += state_->voice.reference_vector(state_->weights, mel.narrow(0, first, length));
    }
  }
  return to_vector(rms_norm(sum));
}

std::vector<float> Synthesizer::say(const std::string& text, const SynthesisOptions& options, const Speaking& as,
                                    SpeakingTimes* times) const {
  const VoiceDescription& description = state_->description;
  const std::string& language = as.language.empty() ? description.config.data.language : as.language;
  SpeakingAs speaker;
  if (!description.speakers.empty()) {
    speaker.vector = as.speaker.empty() ? state_->voice.speaker_vector(
                                              state_->weights, speaker_number(description, description.default_speaker))
                                        : at::tensor(as.speaker);
    speaker.language = language_number(description, language);
  } else if (!as.language.empty() && as.language != description.config.data.language) {
    reject_input("synth", "the voice speaks '{}', not '{}'", description.config.data.language, as.language);
  }
  // The voice has not learnt texts longer than those it was trained on.
  const auto longest = static_cast<size_t>(state_->description.config.data.max_text_length);
  std::vector<float> samples;
  char mark = 0;  // that ended the sentence before
  SpeakingTimes spent;
  Stopwatch watch;
  for (const std::string& sentence : split_sentences(text, longest)) {
    const std::vector<uint16_t> tokens = tokens_of_text(description, sentence, language);
    spent.tokens += watch.lap();
    if (tokens.empty()) continue;
    const at::Tensor mel =
        state_->voice.synthesize(state_->weights, {tokens.begin(), tokens.end()}, options, speaker).mel;
    spent.mel += watch.lap();
    std::vector<float> sound;
    if (state_->vocoder) {
      sound = state_->vocoder->waveform(mel);
    } else {
      GriffinLimOptions how;
      how.threads = available_cores();
      how.seed = options.seed;
      sound =
          griffin_lim(state_->mel, {mel.const_data_ptr<float>(), static_cast<size_t>(mel.numel())}, mel.size(0), how);
    }
    append_speech(samples, sound, pause_after(mark) / options.speed, sample_rate());
    const std::vector<Clause> clauses = split_clauses(sentence);
    mark = clauses.empty() ? '\0' : clauses.back().mark;
    spent.waveform += watch.lap();
  }
  if (times) times->tokens += spent.tokens, times->mel += spent.mel, times->waveform += spent.waveform;
  if (samples.empty()) reject_input("synth", "there is nothing to say in \"{}\"", text);
  return samples;
}

}  // namespace myxtts
