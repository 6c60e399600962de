// Level normalisation and silence trimming. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>

namespace myxtts {

// Gain that brings the RMS of the clip to `target`; 1 for silence. The caller clips the result to [-1, 1].
float gain_to_rms(std::span<const float> samples, double target);
void normalise_rms(std::span<float> samples, double target);

struct TrimSettings {
  double below_peak_db = 50;  // frames this far below the loudest are silence
  int frame_samples = 1024;
  int hop_samples = 256;
  int margin_samples = 512;  // kept on both sides
};

struct SampleRange {
  uint64_t first = 0;
  uint64_t end = 0;  // one past the last
};

// Range without leading and trailing silence; empty if the whole clip is silent.
SampleRange sounding_part(std::span<const float> samples, const TrimSettings& settings);

}  // namespace myxtts
