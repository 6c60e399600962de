// A request for speech: the JSON body of POST /v1/audio/speech as values. Pure functions of what anybody may send, so
// nothing here trusts it; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace myxtts {

struct RequestLimits {
  size_t body_bytes = 9 << 20;
  size_t text_letters = 4096;        // code points
  size_t reference_bytes = 6 << 20;  // of the clip as a file
  double reference_s = 30;           // of the clip as sound
  double sound_s = 1800;             // of the answer
};

enum class SoundFormat { wav, pcm };

struct SpeechRequest {
  std::string input;
  std::string voice;     // empty: the voice's default speaker
  std::string language;  // empty: the voice's own
  SoundFormat format = SoundFormat::wav;
  bool stream = false;
  std::string reference;  // bytes of a clip of who is to speak; empty: none
  double speed = 1;
  // As `synth` has them, unless they are given.
  std::optional<double> temperature, guidance;
  std::optional<int64_t> steps;
  std::optional<uint64_t> seed;
};

// Throws Error (invalid_input) that names the field: one that is unknown, twice there, missing, of a wrong type, out of
// range or over a limit. Nothing is ignored. The body is one flat object, so nothing in it may be nested.
SpeechRequest parse_speech_request(std::string_view body, const RequestLimits& limits);

}  // namespace myxtts
