// Solves the ODE of a flow from noise at time 0 to a mel at time 1. Pure functions; any thread.
#pragma once

#include "model/voice_spec.h"

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace myxtts {

// Times from 0 to 1 that bound `intervals` intervals. A negative sway puts more of them at the beginning.
std::vector<double> flow_times(int64_t intervals, double sway);

// `velocity(x, time)` is called options.steps times, at least once; by midpoint an even number of times, at least
// twice.
at::Tensor solve_flow(at::Tensor x, const SynthesisOptions& options,
                      const std::function<at::Tensor(const at::Tensor& x, double time)>& velocity);

}  // namespace myxtts
