#include "model/flow_solver.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace myxtts {
namespace {

TEST(FlowTimes, go_from_0_to_1_and_follow_the_sway) {
  for (const double sway : {-1.0, -0.5, 0.0, 0.5, 1.0}) {
    const std::vector<double> times = flow_times(8, sway);
    ASSERT_EQ(times.size(), 9U);
    EXPECT_NEAR(times.front(), 0, 1e-12);
    EXPECT_NEAR(times.back(), 1, 1e-12);
    EXPECT_TRUE(std::ranges::is_sorted(times)) << sway;
    EXPECT_EQ(sway < 0, times[4] < 0.5 - 1e-12);
    EXPECT_EQ(sway > 0, times[4] > 0.5 + 1e-12);
  }
}

struct Solved {
  double error;
  int evaluations;
};

// dx/dt = -2 t x from 1: exp(-1) at time 1.
Solved solve(int64_t steps, FlowSolver solver, double sway) {
  SynthesisOptions options;
  options.steps = steps, options.solver = solver, options.sway = sway;
  int evaluations = 0;
  const at::Tensor end = solve_flow(at::ones({1}, at::kDouble), options, [&](const at::Tensor& x, double time) {
    ++evaluations;
    return x * (-2 * time);
  });
  return {std::abs(end.item<double>() - std::exp(-1)), evaluations};
}

TEST(SolveFlow, converges_by_the_order_of_its_solver) {
  for (const double sway : {-1.0, 0.0, 0.5}) {
    const auto gain = [&](FlowSolver solver) { return solve(64, solver, sway).error / solve(128, solver, sway).error; };
    EXPECT_NEAR(gain(FlowSolver::euler), 2, 0.2) << sway;
    EXPECT_NEAR(gain(FlowSolver::midpoint), 4, 0.4) << sway;
  }
}

TEST(SolveFlow, evaluates_as_often_as_asked) {
  EXPECT_EQ(solve(7, FlowSolver::euler, 0).evaluations, 7);
  EXPECT_EQ(solve(8, FlowSolver::midpoint, 0).evaluations, 8);
  EXPECT_EQ(solve(7, FlowSolver::midpoint, 0).evaluations, 6);
  EXPECT_EQ(solve(1, FlowSolver::midpoint, 0).evaluations, 2);
}

}  // namespace
}  // namespace myxtts
