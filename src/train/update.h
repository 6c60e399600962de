// One update of all weights on a GPU: the gradient's norm in one pass, and everything else in a second.
#pragma once

#include "device/device.h"

#include <cstddef>
#include <cstdint>

namespace myxtts {

struct OptimizerSettings {
  double first_decay = 0.9, second_decay = 0.99, least = 1e-8;
  double weight_decay = 0.01;
  double gradient_clip = 5;
  double average_decay = 0.999;
};

// When the average of the weights follows them. Young weights change fast: it follows every update at first, and starts
// short. Later a slow average follows every eighth update, as far as in eight: a fifth of what an update reads and
// writes is the average.
struct AverageSchedule {
  static constexpr int young = 64, every = 8;  // updates
  static constexpr double slow = 0.99;         // decay
};

// `elements` is a multiple of 8. See OptimizerState for what is what.
struct UpdateProblem {
  OptimizerSettings settings;
  int64_t elements = 0, matrix_elements = 0;  // those that weight decay is for come first
  int64_t fresh_elements = 0;                 // the first of them, whose gradients backward writes: left as they are
  bool half = false;                          // gradients and weights are bfloat16
  void* gradients = nullptr;                  // the others zero afterwards
  void* weights = nullptr;                    // null: they are the masters
  float* master = nullptr;
  float* average = nullptr;
  float* first_moment = nullptr;
  float* second_moment = nullptr;
  const float* learning_rate = nullptr;  // scalars from here on
  float* updates = nullptr;
  float* skipped = nullptr;
  float* skipped_total = nullptr;
  float* norm = nullptr;  // of the gradient, before it is clipped
};

size_t update_scratch_bytes();
void update_on_gpu(const UpdateProblem& problem, void* scratch, StreamHandle stream);

}  // namespace myxtts
