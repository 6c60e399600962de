#include "synth/synthesizer.h"

#include "audio/resample.h"
#include "base/error.h"
#include "base/hash.h"
#include "features/mel.h"
#include "model/torch_device.h"
#include "synth/loaded_voice.h"
#include "synth/speaker_file.h"

#include <algorithm>

#include <ATen/ATen.h>

namespace myxtts {
namespace fs = std::filesystem;

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

Synthesizer::Synthesizer(const fs::path& checkpoint, int device, const fs::path& vocoder)
    : voice_(std::make_unique<LoadedVoice>(checkpoint, torch_device(device), vocoder)) {}

Synthesizer::~Synthesizer() = default;

const VoiceDescription& Synthesizer::description() const { return voice_->description; }
int Synthesizer::sample_rate() const { return voice_->mel.sample_rate; }

namespace {

void check_conditioned(const VoiceDescription& voice) {
  if (voice.speakers.empty()) {
    reject_input("synth", "the voice has one speaker, and cannot speak as another",
                 way_out("train on a corpus with several speakers"));
  }
}

// Mel [frames, n_mels] of a whole clip, at the voice's rate. `name` is for an Error.
at::Tensor mel_of_clip(const MelSpec& spec, const Clip& clip, const std::string& name) {
  const Mel mel = MelCpu(spec).compute(resample(clip.samples, clip.sample_rate, spec.sample_rate));
  if (mel.frames < reference_window) reject_input("synth", "{} is too short for a reference", name);
  return at::tensor(mel.values).view({mel.frames, mel.n_mels});
}

// The sum of the vectors of a clip's stretches, each as long as those of training.
at::Tensor sum_of_stretches(const LoadedVoice& voice, const Clip& clip, const std::string& name) {
  at::Tensor sum = at::zeros({condition_width});
  const at::Tensor mel = mel_of_clip(voice.mel, clip, name);
  const int64_t frames = mel.size(0), stretches = std::max<int64_t>(1, frames / reference_frames);
  for (int64_t i = 0; i < stretches; ++i) {
    const int64_t first = i * frames / stretches, length = std::min(frames - first, reference_frames);
    sum += voice.voice.reference_vector(voice.weights, mel.narrow(0, first, length));
  }
  return sum;
}

std::vector<float> to_vector(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.to(at::kCPU, at::kFloat).contiguous();
  return {plain.const_data_ptr<float>(), plain.const_data_ptr<float>() + plain.numel()};
}

// `language` is one of the voice's.
SpeakingAs speaking_as(const LoadedVoice& voice, const Speaking& as, const std::string& language) {
  const VoiceDescription& description = voice.description;
  if (description.speakers.empty()) return {};
  const int64_t number = language_number(description, language);
  if (!as.speaker.empty()) return {at::tensor(as.speaker), number};
  return {voice.voice.speaker_vector(voice.weights, speaker_number(description, description.default_speaker)), number};
}

}  // namespace

std::string Synthesizer::fingerprint() const {
  check_conditioned(voice_->description);
  const VoiceDescription& voice = voice_->description;
  return hash_hex(hash_text(fmt::format("{}\n{}\n{}\n{}", voice.config.model.size, voice.vocabulary.to_json(),
                                        fmt::join(voice.speakers, "\n"), fmt::join(voice.languages, "\n"))));
}

std::vector<float> Synthesizer::speaker_vector(const std::string& name) const {
  check_conditioned(voice_->description);
  if (name.ends_with(".speaker")) {
    SpeakerFile file = read_speaker(name);
    if (file.voice != fingerprint() || file.vector.size() != condition_width) {
      reject_input("synth", "{} was made with another voice", name,
                   way_out("make it again from its clips with `myxtts speakers add`"));
    }
    return file.vector;
  }
  return to_vector(voice_->voice.speaker_vector(voice_->weights, speaker_number(voice_->description, name)));
}

std::vector<float> Synthesizer::reference_vector(const std::vector<fs::path>& clips) const {
  check_conditioned(voice_->description);
  at::Tensor sum = at::zeros({condition_width});
  for (const fs::path& path : clips) sum += sum_of_stretches(*voice_, read_clip(path), path.string());
  return to_vector(rms_norm(sum));
}

std::vector<float> Synthesizer::reference_vector(const Clip& clip) const {
  check_conditioned(voice_->description);
  return to_vector(rms_norm(sum_of_stretches(*voice_, clip, "the clip")));
}

void Synthesizer::warm_up() const {
  constexpr double seconds = 10;
  const VoiceDescription& description = voice_->description;
  const DataConfig& data = description.config.data;
  const int64_t tokens = data.max_text_length * (data.blank_tokens ? 2 : 1) + 1;
  const auto frames = static_cast<int64_t>(seconds * voice_->mel.sample_rate / voice_->mel.hop_length);
  voice_->runner.warm_up(tokens, frames, {});
  if (voice_->vocoder) voice_->vocoder->warm_up(longest_piece_frames + 2 * voice_->vocoder->context_frames());
  // Tokens, not a text: not every voice can say a given one.
  const std::vector<int64_t> some(20, static_cast<int64_t>(description.vocabulary.size()) - 1);
  const std::string& language = description.languages.empty() ? data.language : description.languages.front();
  const at::Tensor mel = voice_->runner.synthesize(some, {}, speaking_as(*voice_, {}, language)).mel;
  if (voice_->vocoder)
    waveform_part(*voice_->vocoder, voice_->mel, mel, 0, std::min(longest_piece_frames, mel.size(0)));
}

Speech Synthesizer::begin(const std::string& text, const SynthesisOptions& options, const Speaking& as) const {
  const std::string& own = voice_->description.config.data.language;
  const std::string& language = as.language.empty() ? own : as.language;
  if (voice_->description.speakers.empty() && language != own) {
    reject_input("synth", "the voice speaks '{}', not '{}'", own, language);
  }
  return {*voice_, text, options, speaking_as(*voice_, as, language), language};
}

std::vector<float> Synthesizer::say(const std::string& text, const SynthesisOptions& options, const Speaking& as,
                                    SpeakingTimes* times) const {
  Speech speech = begin(text, options, as);
  std::vector<float> samples;
  for (std::vector<float> piece = speech.next(); !piece.empty(); piece = speech.next()) {
    samples.insert(samples.end(), piece.begin(), piece.end());
  }
  if (times) {
    const SpeakingTimes& spent = speech.times();
    times->tokens += spent.tokens, times->mel += spent.mel, times->waveform += spent.waveform;
  }
  return samples;
}

}  // namespace myxtts
