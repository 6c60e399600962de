// What decides the shapes of a voice's weights.
#pragma once

#include "model/size.h"

#include <cstdint>

namespace myxtts {

struct VoiceSpec {
  ModelSize size;
  int64_t vocabulary = 0;  // tokens, with padding and blank
  int64_t n_mels = 0;
  double mel_mean = 0, mel_deviation = 1;  // of the corpus: inside, frames are normalised by them
};

// How a text is spoken.
struct SpeakOptions {
  int64_t steps = 10;  // of the flow
  double temperature = 0.667;
  double speed = 1;
  uint64_t seed = 1;
};

}  // namespace myxtts
