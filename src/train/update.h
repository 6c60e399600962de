// One update of a parameter group on a GPU: the gradient norm in one pass, everything else in a second.
#pragma once

#include "device/device.h"

#include <cstddef>
#include <cstdint>

namespace myxtts {

struct OptimizerSettings {
  double beta1 = 0.9, beta2 = 0.99, eps = 1e-8;
  double weight_decay = 0.01;
  double clip_norm = 5;
  double ema_decay = 0.999;
};

// The EMA warms up: it follows every update for the first 64, then, if its decay is slow, every eighth with the
// equivalent decay: the EMA is a fifth of what an update reads and writes.
struct EmaSchedule {
  static constexpr int warm_up = 64, interval = 8;  // updates
  static constexpr double slow_decay = 0.99;
};

// Device memory, but for the settings and sizes. See OptimizerState for what is what.
struct UpdateProblem {
  OptimizerSettings settings;

  struct Sizes {              // in elements, multiples of 8
    int64_t all = 0;          // of the flat buffers
    int64_t matrices = 0;     // the first of them: weight decay is for these alone
    int64_t overwritten = 0;  // the first of them: backward writes their gradients, so they are not cleared
  } sizes;

  bool half = false;          // gradients and weights are bfloat16
  void* gradients = nullptr;  // zero afterwards, but for the overwritten ones
  void* weights = nullptr;    // null: they are the masters

  struct State {
    float* master = nullptr;
    float* ema = nullptr;
    float* first_moment = nullptr;
    float* second_moment = nullptr;
  } state;

  struct Scalars {
    const float* learning_rate = nullptr;
    float* updates = nullptr;
    float* skipped = nullptr;
    float* skipped_total = nullptr;
    float* norm = nullptr;  // of the gradient, before clipping
  } scalars;
};

size_t update_scratch_bytes();
void update_on_gpu(const UpdateProblem& problem, void* scratch, StreamHandle stream);

}  // namespace myxtts
