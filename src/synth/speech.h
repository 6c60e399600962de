// A text while it is spoken: sentence by sentence and, with a vocoder, each sentence in pieces, so that the first
// samples are there long before the last. Whoever wants no more simply stops asking.
#pragma once

#include "model/voice_spec.h"

#include <memory>
#include <string>
#include <vector>

namespace myxtts {

struct LoadedVoice;
struct SpeakingAs;

// The longest piece of a sentence that a vocoder makes at a time.
constexpr int64_t longest_piece_frames = 512;

// Where the time of speaking went, in seconds; of tokens, what was waited for.
struct SpeakingTimes {
  double tokens = 0, mel = 0, waveform = 0;
};

// Borrows the voice. One thread at a time, and one step of one Speech at a time per voice.
class Speech {
 public:
  // `language` is one of the voice's.
  Speech(const LoadedVoice& voice, const std::string& text, const SynthesisOptions& options, const SpeakingAs& as,
         std::string language);
  ~Speech();
  Speech(Speech&&) noexcept;
  Speech& operator=(Speech&&) noexcept;

  // Whether next() would not have to wait until a sentence is pronounced.
  bool ready() const;
  // The next samples; none at the end. What they are does not depend on when they are asked for. Throws Error if the
  // voice cannot say the text.
  std::vector<float> next();
  const SpeakingTimes& times() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace myxtts
