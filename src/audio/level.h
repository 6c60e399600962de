// Loudness and silence: the gain that brings a clip to a level, and the bounds of its sounding part. Any thread.
#pragma once

#include <cstdint>
#include <span>

namespace myxtts {

// The factor that brings the clip's root mean square to `target`; 1 for silence. The result of applying it is to be
// clipped to [-1, 1].
float gain_to_rms(std::span<const float> samples, double target);
void normalise_rms(std::span<float> samples, double target);

struct TrimSettings {
  double below_peak_db = 50;  // quieter than the loudest frame by this much is silence
  int frame_samples = 1024;
  int hop_samples = 256;
  int margin_samples = 512;  // kept on both sides
};

struct SampleRange {
  uint64_t first = 0;
  uint64_t end = 0;  // one past the last
};

// Empty when the whole clip is silent.
SampleRange sounding_part(std::span<const float> samples, const TrimSettings& settings);

}  // namespace myxtts
