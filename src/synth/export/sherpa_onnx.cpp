#include "synth/export/sherpa_onnx.h"

#include "base/error.h"
#include "base/files.h"
#include "model/condition.h"
#include "model/voice.h"
#include "synth/export/onnx_vocoder.h"
#include "synth/export/onnx_voice.h"
#include "synth/export/readme.h"
#include "synth/export/runtime_lexicon.h"
#include "synth/export/runtime_tokens.h"
#include "synth/synthesizer.h"
#include "synth/vocoder_file.h"
#include "synth/voice_file.h"

#include <array>
#include <sstream>

#include <ATen/ATen.h>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

constexpr std::array<std::pair<const char*, WeightPrecision>, 3> precisions = {
    {{"float32", WeightPrecision::float32}, {"float16", WeightPrecision::float16}, {"int8", WeightPrecision::int8}}};

std::string name_of_precision(WeightPrecision precision) { return precisions[static_cast<size_t>(precision)].first; }

fs::path vocoder_of(const SherpaOnnxExport& what, const fs::path& voice) {
  if (!what.vocoder.empty()) return fs::is_directory(what.vocoder) ? find_voice(what.vocoder) : what.vocoder;
  fs::path beside = voice.parent_path() / "vocoder.safetensors";
  if (fs::exists(beside)) return beside;
  reject_input("export", "{} has no vocoder beside it, and sherpa-onnx speaks by one", voice.string(),
               way_out("give --vocoder FILE; `train --target vocoder` makes one"));
}

void check(const SherpaOnnxExport& what, const VoiceDescription& voice, const fs::path& file) {
  if (voice.config.data.text_tokens != "phonemes") {
    reject_input("export", "{} was trained on characters, and sherpa-onnx gives it phonemes", file.string(),
                 way_out("train with data.text_tokens: phonemes, or give --format safetensors"));
  }
  if (!what.espeak_data.empty() && !fs::exists(what.espeak_data / "phontab")) {
    reject_input("export", "{} is not a folder of espeak-ng's data", what.espeak_data.string(),
                 way_out("it is the one that holds phontab"));
  }
  SynthesisOptions options;
  options.steps = what.steps;
  check_options(options);
}

std::string language_of(const SherpaOnnxExport& what, const VoiceDescription& voice) {
  const std::string& own = voice.config.data.language;
  if (what.language.empty()) return own;
  if (voice.languages.empty() && what.language != own) {
    reject_input("export", "the voice speaks '{}', not '{}'", own, what.language);
  }
  return what.language;
}

// Who speaks, in the order of their numbers in the exported voice: first who speaks unless another is asked for.
std::vector<std::string> speakers_of(const SherpaOnnxExport& what, const VoiceDescription& voice) {
  if (!what.speaker.empty()) return {what.speaker};
  std::vector<std::string> speakers;
  if (!voice.speakers.empty()) speakers.push_back(voice.default_speaker);
  for (const std::string& speaker : voice.speakers) {
    if (speaker != voice.default_speaker) speakers.push_back(speaker);
  }
  return speakers;
}

// Their vectors, with the language's: [speakers, condition_width].
at::Tensor conditions_of(const Synthesizer& voice, const NamedWeights& weights,
                         const std::vector<std::string>& speakers, const std::string& language) {
  std::vector<at::Tensor> vectors;
  for (const std::string& speaker : speakers) vectors.push_back(at::tensor(voice.speaker_vector(speaker)));
  const at::Tensor spoken =
      unit_rows(weights["languages.table"][language_number(voice.description(), language)].unsqueeze(0));
  return at::stack(vectors) + spoken;
}

SharedFile write_voice(const SherpaOnnxExport& what, const VoiceDescription& description, const NamedWeights& weights,
                       const std::vector<std::string>& speakers, const std::string& language,
                       const at::Tensor& conditions) {
  OnnxVoice voice{description.spec(), !description.config.data.blank_tokens, conditions, {}};
  voice.flow.steps = what.steps;
  OnnxGraph graph("voice", what.precision);
  add_voice(graph, voice, weights);
  graph.describe("model_type", "matcha-tts");
  graph.describe("sample_rate", std::to_string(resolve_mel_spec(description.config).sample_rate));
  graph.describe("n_speakers", std::to_string(std::max<size_t>(1, speakers.size())));
  graph.describe("speakers", fmt::format("{}", fmt::join(speakers, ",")));
  graph.describe("language", language);
  graph.describe("voice", language);
  graph.describe("has_espeak", "1");
  graph.describe("use_eos_bos", "0");
  graph.describe("pad_id", std::to_string(Vocabulary::blank));
  const fs::path path = what.folder / "model.onnx";
  return {path, graph.write(path)};
}

SharedFile write_vocoder(const SherpaOnnxExport& what, const fs::path& file, const MelSpec& mel) {
  OnnxGraph graph("vocoder", what.precision);
  const fs::path path = what.folder / "vocoder.onnx";
  if (is_hifigan(file)) {
    const HifiganGenerator generator = read_hifigan(file, mel, at::kCPU);
    add_hifigan(graph, generator, mel.sample_rate);
    return {path, graph.write(path)};
  }
  const VoiceDescription description = read_description(file);
  const VocoderSpec spec = vocoder_spec(description.config.model.size, mel, description.mel_mean, description.mel_std);
  const ParameterLayout layout = Vocoder(spec).layout();
  const at::Tensor flat = load_ema_weights(file, layout);
  add_vocoder(graph, spec, mel, NamedWeights(layout, flat));
  return {path, graph.write(path)};
}

std::vector<std::string> lines_of(const fs::path& path) {
  constexpr uint64_t longest = 1 << 28;
  std::istringstream stream(read_text_file(path, longest));
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  if (lines.empty()) reject_input("export", "{} holds no text", path.string(), way_out("give one text per line"));
  return lines;
}

SharedFile write_text(const fs::path& path, const std::string& text) {
  write_file_atomically(path, text);
  return {path, text.size()};
}

}  // namespace

WeightPrecision precision_named(const std::string& name) {
  for (const auto& [known, precision] : precisions) {
    if (name == known) return precision;
  }
  reject_input("export", "--precision is '{}'", name, way_out("it may be float32, float16 or int8"));
}

std::vector<SharedFile> export_sherpa_onnx(const SherpaOnnxExport& what) {
  const fs::path file = find_voice(what.voice);
  const VoiceDescription description = read_voice_description(file);
  check(what, description, file);
  const fs::path vocoder = vocoder_of(what, file);
  const Synthesizer voice(file, -1, vocoder);  // checks that they fit
  const std::vector<std::string> speakers = speakers_of(what, description);
  const std::string language = language_of(what, description);
  const ParameterLayout layout = Voice(description.spec()).layout();
  const at::Tensor flat = load_ema_weights(file, layout);
  const NamedWeights weights(layout, flat);
  const at::Tensor conditions = speakers.empty() ? at::Tensor() : conditions_of(voice, weights, speakers, language);
  const MelSpec mel = resolve_mel_spec(description.config);
  const std::vector<std::string> texts = what.words.empty() ? std::vector<std::string>{} : lines_of(what.words);

  fs::create_directories(what.folder);
  std::vector<SharedFile> files = {write_voice(what, description, weights, speakers, language, conditions),
                                   write_vocoder(what, vocoder, mel)};
  files.push_back(write_text(what.folder / "tokens.txt", runtime_tokens(description.vocabulary)));
  files.push_back(write_text(what.folder / "phonemes.py", phonemes_script(language)));
  if (!texts.empty()) {
    files.push_back(write_text(what.folder / "lexicon.txt", runtime_lexicon(texts, language, description.vocabulary)));
  }
  if (!what.espeak_data.empty()) {
    fs::copy(what.espeak_data, what.folder / "espeak-ng-data",
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }
  const ExportedVoice page{what.speaker.empty() ? speakers : std::vector<std::string>{},
                           language,
                           mel.sample_rate,
                           name_of_precision(what.precision),
                           !texts.empty(),
                           !what.espeak_data.empty()};
  files.push_back(write_text(what.folder / "README.md", export_readme(page)));
  return files;
}

}  // namespace myxtts
