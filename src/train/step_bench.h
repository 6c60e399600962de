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
  int64_t repeats = 20, steps_each = 10;
};

struct StepTimes {
  std::vector<double> step_ms;  // mean of each repeat
  double record_s = 0;
  double flop = 0;  // multiplications and additions of the step's matrix products
  int64_t parameters = 0;
};

StepTimes measure_step(const StepBench& bench);

}  // namespace myxtts
