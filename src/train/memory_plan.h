// Largest batch size whose step fits into memory. Pure, and no libtorch here.
#pragma once

#include "model/size.h"
#include "settings/config.h"

#include <cstdint>

namespace myxtts {

// Estimate of the memory that a step needs: activations kept for backward, weights with their optimiser's state, and
// the libraries' own.
struct StepMemory {
  ModelSize size;
  int64_t frames = 0, tokens = 0, n_mels = 0;  // of the longest shape
  bool half = false;                           // bfloat16 with float masters
  bool fused = false;

  double bytes(int64_t rows) const;
};

// The largest size of a range whose step fits into `bytes`, a multiple of eight where there is one; the smallest where
// none fits.
int64_t fitting_batch_size(const IntRange& range, const StepMemory& step, double bytes);

}  // namespace myxtts
