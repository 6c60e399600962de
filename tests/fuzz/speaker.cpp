// .speaker files.
#include "fuzz.h"
#include "synth/speaker_file.h"

#include <cmath>

using namespace myxtts;

FUZZ_TARGET(input) {
  const SpeakerFile speaker = read_speaker(fuzz::file_of(input));
  if (speaker.vector.empty()) return;
  for (const float value : mixed({speaker.vector, speaker.vector})) fuzz::expect(std::isfinite(value));
}
