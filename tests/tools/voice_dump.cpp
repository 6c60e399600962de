// What a voice makes of a text, step by step, for the comparison with its exported model:
//   voice_dump VOICE.safetensors VOCODER.safetensors TEXT SPEAKER LANGUAGE OUT.safetensors
// An empty SPEAKER or LANGUAGE is the voice's own. Writes tokens, the noise, the mel at temperature 1 and at 0, and the
// waveform of the latter.
#include "artifacts/safetensors.h"
#include "model/voice.h"
#include "synth/synthesizer.h"
#include "synth/tensor_view.h"
#include "synth/vocoder_file.h"
#include "synth/voice_file.h"

#include <cstdio>
#include <exception>
#include <string>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

namespace myxtts {
namespace {

void dump(char** arguments) {
  const std::string voice_file = arguments[1], vocoder_file = arguments[2], text = arguments[3], speaker = arguments[4],
                    language = arguments[5];
  const VoiceDescription description = read_voice_description(voice_file);
  const MelSpec spec = resolve_mel_spec(description.config);
  const Voice voice(description.spec());
  const Weights weights = make_weights(voice.layout(), load_ema_weights(voice_file, voice.layout()), false);
  SpeakingAs as;
  if (!description.speakers.empty()) {
    const Synthesizer synthesizer(voice_file, -1, vocoder_file);
    as.vector = at::tensor(synthesizer.speaker_vector(speaker.empty() ? description.default_speaker : speaker));
    as.language = language_number(description, language.empty() ? description.config.data.language : language);
  }
  const std::vector<uint16_t> tokens = tokens_of_text(description, text, language);
  SynthesisOptions options;
  options.temperature = 1;
  const at::Tensor spoken = voice.synthesize(weights, {tokens.begin(), tokens.end()}, options, as).mel;
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(options.seed);
  const at::Tensor noise = at::randn({spoken.size(0), spec.n_mels}, generator);
  options.temperature = 0;
  const at::Tensor plain = voice.synthesize(weights, {tokens.begin(), tokens.end()}, options, as).mel;
  const std::vector<float> samples = open_vocoder(vocoder_file, spec, at::kCPU)->waveform(plain);
  const std::vector<int32_t> numbers(tokens.begin(), tokens.end());
  const at::Tensor token_tensor = at::tensor(numbers, at::kInt), waveform = at::tensor(samples);
  const std::vector<TensorView> written = {as_view("tokens", token_tensor), as_view("noise", noise),
                                           as_view("mel", spoken), as_view("plain_mel", plain),
                                           as_view("waveform", waveform)};
  write_safetensors(arguments[6], written);
}

}  // namespace
}  // namespace myxtts

int main(int count, char** arguments) {
  if (count != 7) return 2;
  try {
    myxtts::dump(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
