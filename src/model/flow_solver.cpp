#include "model/flow_solver.h"

#include <cmath>
#include <numbers>

namespace myxtts {

std::vector<double> flow_times(int64_t intervals, double sway) {
  std::vector<double> times;
  for (int64_t i = 0; i <= intervals; ++i) {
    const double u = static_cast<double>(i) / static_cast<double>(intervals);
    times.push_back(u + sway * (std::cos(std::numbers::pi / 2 * u) - 1 + u));
  }
  return times;
}

}  // namespace myxtts
