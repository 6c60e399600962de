// How long a training step takes on a batch of one shape, with the data there already.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace myxtts {

struct StepBench {
  std::string size = "normal";
  int64_t rows = 16, tokens = 150, frames = 800;
  int device = -1;     // -1: the CPU
  bool half = true;    // bfloat16 with float masters, on a GPU
  bool record = true;  // on a GPU
  bool fused = true;   // kernels
  int64_t repeats = 20, steps_each = 10;
  int64_t profiled_steps = 0;  // more steps, watched kernel by kernel; on a GPU
};

// Of one kernel in a step.
struct KernelTime {
  std::string name;
  double launches = 0, ms = 0;
};

struct StepTimes {
  std::vector<double> step_ms;  // mean of each repeat
  double record_s = 0;
  double flop = 0;  // multiplications and additions of the step's matrix products
  int64_t parameters = 0;
  std::vector<KernelTime> kernels;
};

StepTimes measure_step(const StepBench& bench);

}  // namespace myxtts
