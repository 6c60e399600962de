#include "train/speech.h"

#include "base/error.h"
#include "base/workers.h"
#include "features/cpu/griffin_lim.h"
#include "text/cleaner.h"
#include "text/phonemes.h"
#include "text/sentences.h"

#include <ATen/ATen.h>

namespace myxtts {

std::vector<uint16_t> tokens_of_text(const VoiceDescription& voice, const std::string& text) {
  const DataConfig& data = voice.config.data;
  std::string symbols = clean_text(text, data.language);
  if (data.text_tokens == "phonemes") symbols = to_phonemes({symbols}, data.language, {}, 1, {}).front();
  try {
    return voice.vocabulary.encode(symbols, data.blank_tokens);
  } catch (const Error& error) {
    reject_input("synth", "the voice was not trained on a character of \"{}\": {}", text, error.what());
  }
}

Speaker::Speaker(const std::filesystem::path& checkpoint, at::Device device)
    : description_(read_checkpoint_header(checkpoint).voice),
      mel_(resolve_mel_spec(description_.config)),
      voice_(description_.spec()),
      weights_(make_weights(voice_.layout(), load_average(checkpoint, voice_.layout()).to(device), false)) {}

std::vector<float> Speaker::say(const std::string& text, const SpeechOptions& options) const {
  // Longer than what the voice was trained on is asking for trouble.
  const auto longest = static_cast<size_t>(description_.config.data.max_text_length);
  std::vector<float> samples;
  GriffinLimOptions griffin_lim_options;
  griffin_lim_options.threads = available_cores();
  griffin_lim_options.seed = options.speak.seed;
  for (const std::string& sentence : split_sentences(text, longest)) {
    const std::vector<uint16_t> tokens = tokens_of_text(description_, sentence);
    if (tokens.empty()) continue;
    const Spoken spoken = voice_.speak(weights_, {tokens.begin(), tokens.end()}, options.speak);
    if (!samples.empty()) samples.insert(samples.end(), static_cast<size_t>(options.pause_s * sample_rate()), 0.0F);
    const std::vector<float> sound = griffin_lim(mel_, {spoken.mel.const_data_ptr<float>(), static_cast<size_t>(spoken.mel.numel())},
                                                 spoken.mel.size(0), griffin_lim_options);
    samples.insert(samples.end(), sound.begin(), sound.end());
  }
  if (samples.empty()) reject_input("synth", "there is nothing to say in \"{}\"", text);
  return samples;
}

}  // namespace myxtts
