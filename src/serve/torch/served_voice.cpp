#include "serve/served_voice.h"

#include "base/error.h"
#include "synth/synthesizer.h"
#include "text/phonemes.h"

#include <memory>

namespace myxtts {
namespace {

SynthesisOptions options_of(const SpeechRequest& request) {
  SynthesisOptions options;
  options.speed = request.speed;
  options.temperature = request.temperature.value_or(options.temperature);
  options.guidance = request.guidance.value_or(options.guidance);
  options.steps = request.steps.value_or(options.steps);
  options.seed = request.seed.value_or(options.seed);
  return options;
}

VoiceFacts facts_of(const Synthesizer& synthesizer) {
  const VoiceDescription& voice = synthesizer.description();
  const std::string& own = voice.config.data.language;
  return {voice.speakers, voice.languages.empty() ? std::vector{own} : voice.languages, voice.default_speaker, own,
          synthesizer.sample_rate()};
}

bool needs_espeak(const Synthesizer& synthesizer) {
  return synthesizer.description().config.data.text_tokens == "phonemes";
}

// Its absence is the server's fault, whoever finds out.
void check_espeak(bool available) {
  if (available) return;
  fail("serve", "this voice needs espeak-ng, which is not installed",
       way_out("install it with: apt-get install espeak-ng"));
}

}  // namespace

ServedVoice served_voice(const Synthesizer& synthesizer) {
  check_espeak(!needs_espeak(synthesizer) || phonemes_available(synthesizer.description().config.data.language));
  if (needs_espeak(synthesizer)) expect_phonemes(synthesizer.description().config.data.language);
  const auto begin = [&synthesizer](const SpeechRequest& request, const std::optional<Clip>& reference) -> SpokenText {
    check_espeak(!needs_espeak(synthesizer) || phonemes_available());
    if (needs_espeak(synthesizer) && !request.language.empty()) expect_phonemes(request.language);
    Speaking as;
    as.language = request.language;
    if (reference) {
      as.speaker = synthesizer.reference_vector(*reference);
    } else if (!request.voice.empty() && request.voice != "default") {
      as.speaker = synthesizer.speaker_vector(request.voice);
    }
    const auto speech = std::make_shared<Speech>(synthesizer.begin(request.input, options_of(request), as));
    return {[speech] { return speech->next(); }, [speech] { return speech->ready(); }};
  };
  return {facts_of(synthesizer), begin};
}

}  // namespace myxtts
