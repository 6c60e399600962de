// How fast a vocoder makes waveforms, with its matrix products alone beside it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace myxtts {

struct VocoderBench {
  std::string size = "tiny", preset = "hifigan";
  double seconds = 10;  // of sound
  int device = -1;      // -1: the CPU
  int threads = 1;      // on the CPU
  int repeats = 20;
};

struct VocoderTimes {
  std::vector<double> waveform_s;  // per repeat, from a mel on the host to samples there
  double products_s = 0;           // median: matrix products of the same shapes and nothing else
  double sound_s = 0;              // what was made
  int64_t parameters = 0;
};

VocoderTimes measure_vocoder(const VocoderBench& bench);

}  // namespace myxtts
