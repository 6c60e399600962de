// Log-mel on the CPU: the plain reference in double, and the fast version that must agree with it.
#pragma once

#include "features/mel_spec.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace myxtts {

// Frames in rows: [frames, n_mels].
struct Mel {
  int64_t frames = 0;
  int n_mels = 0;
  std::vector<float> values;
};

// `samples` are mono at the preset's sample rate. Slow and easy to check.
Mel mel_reference(const MelSpec& spec, std::span<const float> samples);

// Tables and scratch memory for one convention. One instance per thread; allocates only when a clip is longer than any
// before. Its results are the same on every machine to the last bit, whatever its vector width.
class MelCpu {
 public:
  explicit MelCpu(const MelSpec& spec);
  ~MelCpu();
  MelCpu(MelCpu&&) noexcept;

  const MelSpec& spec() const;

  // Writes spec().frames(samples.size()) rows into `out`, which has room for them.
  void compute(std::span<const float> samples, std::span<float> out);
  Mel compute(std::span<const float> samples);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What one core could do if it did nothing but this convention's arithmetic, multiplying and adding at its measured
// peak.
double mel_cpu_limit_frames_per_s(const MelSpec& spec);

}  // namespace myxtts
