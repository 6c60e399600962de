// Source-filter formant synthesizer: glottal pulses and noise through three moving formants. Pure functions; any
// thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace myxtts {

struct Speaker {
  double pitch_hz = 120;
  double tract_scale = 1.0;  // above 1: shorter vocal tract, higher formants
};

// Speaker `number` of a corpus; 0 is the reference voice, the others vary around it.
Speaker demo_speaker(int number);

// Synthesizes samples in [-1, 1]. Skips unknown letters.
std::vector<float> synthesize(std::string_view text, const Speaker& speaker, int sample_rate, uint64_t seed);

}  // namespace myxtts
