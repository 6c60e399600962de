// AdamW with everything that changes on the device: step count, learning rate, gradient norm and whether it is finite.
// Nothing waits for the host, so an update can be captured and replayed.
#pragma once

#include "model/parameters.h"
#include "train/update.h"

#include <ATen/core/Tensor.h>

namespace myxtts {

// Of one parameter group. All flat, float, in the layout of the weights.
struct OptimizerState {
  at::Tensor master;  // the weights in full precision; the same memory as the weights if those are float
  at::Tensor ema;     // EMA of the weights: used for validation and synthesis
  at::Tensor first_moment, second_moment;
  at::Tensor updates;        // scalar: how many were done
  at::Tensor skipped;        // scalar: how many in a row were not, because the gradient norm was not finite
  at::Tensor skipped_total;  // scalar
};

OptimizerState make_optimizer_state(const at::Tensor& initial);

// One update from weights.gradients, which are zero afterwards, but for what the next backward overwrites (see
// Weights::overwrite_trunk_gradients). Returns the gradient norm before clipping, a scalar on the device. A norm that
// is not finite changes nothing but the two counters.
at::Tensor update_weights(const OptimizerSettings& settings, const ParameterLayout& layout,
                          const at::Tensor& learning_rate, Weights& weights, OptimizerState& state);
// The same in two passes over memory, on a GPU.
at::Tensor update_weights_fused(const OptimizerSettings& settings, const ParameterLayout& layout,
                                const at::Tensor& learning_rate, Weights& weights, OptimizerState& state);

// Rises over `warmup` steps, then falls along a cosine to a tenth at `total`.
double scheduled_learning_rate(double peak, int64_t step, int64_t warmup, int64_t total);

}  // namespace myxtts
