// What a server speaks with: facts and one function, so that the server knows neither a model nor libtorch.
#pragma once

#include "audio/clip.h"
#include "serve/speech_request.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace myxtts {

class Synthesizer;

struct VoiceFacts {
  std::vector<std::string> speakers, languages;  // without speakers it is one voice, which cannot be another one
  std::string default_speaker, default_language;
  int sample_rate = 0;

  bool takes_references() const { return !speakers.empty(); }
};

// A text that is being spoken.
struct SpokenText {
  std::function<std::vector<float>()> next;  // the next samples; none at the end. Throws Error
  std::function<bool()> ready;               // whether next() finds what it needs, instead of waiting for a process
};

struct ServedVoice {
  VoiceFacts facts;
  // Of a request that was checked. One thread at a time calls this and what it returns.
  std::function<SpokenText(const SpeechRequest&, const std::optional<Clip>& reference)> begin;
};

// Throws Error that names the field if the voice cannot do what is asked: nobody of that name, no such language.
void check_request(const SpeechRequest& request, const VoiceFacts& voice);

// The clip of a request, decoded in memory. Throws Error if it is not sound, or longer than the limit.
std::optional<Clip> decode_reference(const SpeechRequest& request, const RequestLimits& limits);

// Borrows the synthesizer. In builds with libtorch. Throws Error if the voice needs espeak-ng, and it is missing.
ServedVoice served_voice(const Synthesizer& synthesizer);

}  // namespace myxtts
