#include "train/memory_plan.h"

namespace myxtts {

// The constants are fitted to measured steps of every size (bench/results/step_memory.json) and rounded up.
double StepMemory::bytes(int64_t rows) const {
  const double value = half ? 2 : 4;
  // Values that a block keeps per position and unit of its width. Plain operations keep every intermediate of a norm,
  // of the rotation and of the modulation.
  const double kept = fused ? 18 : 25;
  constexpr double passing = 17;  // of the block at hand, in backward
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
  constexpr double states = 4 * 4;            // masters, EMA and two moments, in float
  const double temporaries = fused ? 4 : 24;  // of the update
  constexpr double libraries = 0.55e9;        // context, handles and workspaces
  return activations + weights * (states + 2 * value + temporaries) + libraries;
}

int64_t fitting_batch_size(const IntRange& range, const StepMemory& step, double bytes) {
  int64_t largest = range.low;
  for (int64_t rows = range.low; rows <= range.high && step.bytes(rows) <= bytes; ++rows) largest = rows;
  const int64_t even = largest / 8 * 8;
  return even >= range.low ? even : largest;
}

}  // namespace myxtts
