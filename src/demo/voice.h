// A small source-filter voice: a glottal pulse and noise through three moving formants. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace myxtts {

struct Speaker {
  double pitch_hz = 120;
  double tract_scale = 1.0;  // above 1: a shorter tract, higher formants
};

// Speaker `number` of a corpus; number 0 is always the same voice, the others spread around it.
Speaker demo_speaker(int number);

// Letters the voice does not know are passed over.
std::vector<float> speak(std::string_view text, const Speaker& speaker, int sample_rate, uint64_t seed);

}  // namespace myxtts
