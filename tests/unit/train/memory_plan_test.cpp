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

// Gigabytes of uncaptured steps measured on one H200, 800 frames and 150 tokens (bench/results/step_memory.json).
TEST(MemoryPlan, is_what_was_measured_or_a_little_more) {
  struct Measured {
    const char* size;
    int64_t rows;
    bool half, fused;
    double gigabytes;
  };
  for (const Measured& measured : {Measured{"tiny", 8, true, true, 1.06},
                                   {"tiny", 32, true, true, 2.41},
                                   {"small", 32, true, true, 4.23},
                                   {"normal", 32, true, true, 8.07},
                                   {"big", 32, true, true, 16.2},
                                   {"normal", 32, true, false, 11.4},
                                   {"big", 32, true, false, 23.7},
                                   {"tiny", 32, false, false, 4.83},
                                   {"normal", 32, false, false, 17.9}}) {
    const StepMemory step{model_size(measured.size), 800, 150, 80, measured.half, measured.fused};
    const double ratio = step.bytes(measured.rows) / 1e9 / measured.gigabytes;
    EXPECT_GT(ratio, 0.99) << measured.size << " " << measured.rows;
    EXPECT_LT(ratio, 1.25) << measured.size << " " << measured.rows;
  }
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
