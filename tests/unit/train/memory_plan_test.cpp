#include "train/memory_plan.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {

StepMemory normal_step() { return {model_size("normal"), 800, 150, 80, true, true}; }

TEST(MemoryPlan, takes_the_largest_that_fits) {
  const StepMemory step = normal_step();
  const IntRange range{16, 64};
  EXPECT_EQ(fitting_batch_size(range, step, 1e12), 64);
  EXPECT_EQ(fitting_batch_size(range, step, 0), 16);
  EXPECT_EQ(fitting_batch_size(range, step, step.bytes(40)), 40);
  EXPECT_EQ(fitting_batch_size(range, step, step.bytes(45)), 40);  // a multiple of eight
  EXPECT_EQ(fitting_batch_size({3, 7}, step, 1e12), 7);
}

TEST(MemoryPlan, grows_with_what_a_step_holds) {
  const StepMemory step = normal_step();
  EXPECT_GT(step.bytes(32), step.bytes(16));
  StepMemory other = step;
  other.fused = false;
  EXPECT_GT(other.bytes(16), step.bytes(16));
  other = step;
  other.half = false;
  EXPECT_GT(other.bytes(16), step.bytes(16));
  other = step;
  other.size = model_size("big");
  EXPECT_GT(other.bytes(16), step.bytes(16));
}

}  // namespace
}  // namespace myxtts
