// Log-mel on the CPU: a plain reference in double, and a fast version that must agree with it.
#pragma once

#include "features/mel_spec.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace myxtts {

// Row-major [frames, n_mels].
struct Mel {
  int64_t frames = 0;
  int n_mels = 0;
  std::vector<float> values;
};

// `samples` are mono at the sample rate of the preset. Slow; the reference for tests.
Mel mel_reference(const MelSpec& spec, std::span<const float> samples);

// Owns tables and scratch memory for one convention. One instance per thread. Allocates only if a clip is longer than
// all before. Results are bit-identical on every CPU, with or without AVX2.
class MelCpu {
 public:
  explicit MelCpu(const MelSpec& spec);
  ~MelCpu();
  MelCpu(MelCpu&&) noexcept;

  const MelSpec& spec() const;

  // Writes spec().frames(samples.size()) rows into `out`, which must have room for them.
  void compute(std::span<const float> samples, std::span<float> out);
  Mel compute(std::span<const float> samples);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Upper bound for one core: the arithmetic of this convention at the measured peak FLOP/s.
double mel_cpu_limit_frames_per_s(const MelSpec& spec);

}  // namespace myxtts
