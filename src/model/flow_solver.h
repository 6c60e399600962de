// Solves the ODE of a flow from noise at time 0 to a mel at time 1. Pure functions; any thread.
#pragma once

#include "model/voice_spec.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace myxtts {

// Times from 0 to 1 that bound `intervals` intervals. A negative sway puts more of them at the beginning.
std::vector<double> flow_times(int64_t intervals, double sway);

// `velocity(x, time)` is called options.steps times, at least once; by midpoint an even number of times, at least
// twice. A State is a tensor, or what stands for one while a graph is built.
template <typename State, typename Velocity>
State solve_flow(State x, const SynthesisOptions& options, const Velocity& velocity) {
  const bool midpoint = options.solver == FlowSolver::midpoint;
  const int64_t intervals = std::max<int64_t>(1, midpoint ? options.steps / 2 : options.steps);
  const std::vector<double> times = flow_times(intervals, options.sway);
  for (size_t i = 0; i + 1 < times.size(); ++i) {
    const double time = times[i], step = times[i + 1] - time;
    State flow = velocity(x, time);
    if (midpoint) flow = velocity(x + flow * (step / 2), time + step / 2);
    x = x + flow * step;
  }
  return x;
}

}  // namespace myxtts
