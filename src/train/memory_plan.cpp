#include "train/memory_plan.h"

namespace myxtts {

double StepMemory::bytes(int64_t rows) const {
  const double value = half ? 2 : 4;
  // Values that a block keeps for each position and unit of its width: norms with what they add (6), queries, keys and
  // values (3), what was seen (1) and the feed-forward before and after its activation (8). Plain operations keep about
  // two and a half times as many: every step of a norm, of the rotation and of the modulation.
  const double kept = 18 * (fused ? 1 : 2.5);
  constexpr double passing = 24;  // of the block at hand, on the way back
  const auto stack = [&](int64_t blocks, int64_t width, int64_t positions) {
    return static_cast<double>(positions) * static_cast<double>(width) * value *
           (static_cast<double>(blocks) * kept + passing);
  };
  const double activations =
      static_cast<double>(rows) *
      (stack(size.encoder_blocks, size.encoder_width, tokens) + stack(size.decoder_blocks, size.decoder_width, frames) +
       8 * 4 * static_cast<double>(frames) * static_cast<double>(n_mels) +  // mel, noise, flow
       4 * static_cast<double>(frames) * static_cast<double>(tokens));      // alignment
  const auto block_weights = [](int64_t blocks, int64_t width) {
    return static_cast<double>(blocks) * 12 * static_cast<double>(width) * static_cast<double>(width);
  };
  const double weights = block_weights(size.encoder_blocks, size.encoder_width) +
                         block_weights(size.decoder_blocks, size.decoder_width) +
                         8 * static_cast<double>(size.decoder_width) * static_cast<double>(size.decoder_width);
  constexpr double states = 4 * 4;  // masters, average and two moments, in float
  constexpr double libraries = 1.2e9;
  return activations + weights * (states + 2 * value) + libraries;
}

int64_t fitting_batch_size(const IntRange& range, const StepMemory& step, double bytes) {
  int64_t largest = range.low;
  for (int64_t rows = range.low; rows <= range.high && step.bytes(rows) <= bytes; ++rows) largest = rows;
  const int64_t even = largest / 8 * 8;
  return even >= range.low ? even : largest;
}

}  // namespace myxtts
