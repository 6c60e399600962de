// Polyphase windowed-sinc resampling from any rate to any rate: a Hann-windowed sinc, 6 zero crossings per side, cut
// off at 0.99 of the lower Nyquist rate (the definition of torchaudio's `sinc_interp_hann` with its defaults). Output
// has ceil(length * to / from) samples; samples outside the clip are zero.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace myxtts {

// Filter of one pair of rates. Immutable; any number of threads may share it.
class ResampleFilter {
 public:
  ResampleFilter(int from_hz, int to_hz);

  bool identity() const { return from_ == to_; }
  uint64_t output_length(uint64_t input_length) const { return (input_length * to_ + from_ - 1) / from_; }

  // Output sample n = q * phases() + p is the sum over k < taps() of tap(p, k) * input[q * step() + first(p) + k].
  int64_t phases() const { return to_; }
  int64_t step() const { return from_; }
  int64_t taps() const { return taps_; }
  int64_t first(int64_t phase) const;
  float tap(int64_t phase, int64_t k) const;

  // All taps [phases, taps]. Large for coprime rates, so create it once per pair of rates.
  std::vector<float> table() const;

 private:
  int64_t from_, to_;  // in lowest terms
  int64_t taps_;
  double cutoff_;  // in input rates
};

// Any thread. Builds the tap table only if the clip is long enough to amortise it.
std::vector<float> resample(std::span<const float> input, int from_hz, int to_hz);
std::vector<float> resample(std::span<const float> input, const ResampleFilter& filter, std::span<const float> table);

}  // namespace myxtts
