#include "model/flow_solver.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <ATen/ATen.h>

namespace myxtts {

std::vector<double> flow_times(int64_t intervals, double sway) {
  std::vector<double> times;
  for (int64_t i = 0; i <= intervals; ++i) {
    const double u = static_cast<double>(i) / static_cast<double>(intervals);
    times.push_back(u + sway * (std::cos(std::numbers::pi / 2 * u) - 1 + u));
  }
  return times;
}

at::Tensor solve_flow(at::Tensor x, const SynthesisOptions& options,
                      const std::function<at::Tensor(const at::Tensor& x, double time)>& velocity) {
  const bool midpoint = options.solver == FlowSolver::midpoint;
  const int64_t intervals = std::max<int64_t>(1, midpoint ? options.steps / 2 : options.steps);
  const std::vector<double> times = flow_times(intervals, options.sway);
  for (size_t i = 0; i + 1 < times.size(); ++i) {
    const double time = times[i], step = times[i + 1] - time;
    at::Tensor flow = velocity(x, time);
    if (midpoint) flow = velocity(x + flow * (step / 2), time + step / 2);
    x = x + flow * step;
  }
  return x;
}

}  // namespace myxtts
