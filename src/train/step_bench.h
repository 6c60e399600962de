// How long a training step takes with the data there already: on a batch of one shape, or with lengths that vary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace myxtts {

struct StepBench {
  std::string target = "voice";  // or vocoder: crops of crop_samples, at 24 kHz
  std::string size = "normal";
  int64_t rows = 16, tokens = 150, frames = 800;
  int device = -1;      // -1: the CPU
  bool half = true;     // bfloat16 with float masters, on a GPU
  bool capture = true;  // on a GPU
  bool fused = true;    // kernels
  int64_t repeats = 20, steps_each = 10;
  int64_t profiled_steps = 0;  // more steps, watched kernel by kernel; on a GPU
  int64_t speakers = 0;        // above 0: a voice conditioned on so many, with references
  bool convolutions = true;    // false: the model of version 0.1, attention alone and no dropout
  int64_t encoder_blocks = 0;  // 0: as the size says
  bool reduce = false;         // on a GPU: NCCL sums the gradients of one rank within the step
};

// Of one kernel in a step.
struct KernelTime {
  std::string name;
  double launches = 0, ms = 0;
};

struct StepTimes {
  std::vector<double> step_ms;  // mean of each repeat
  double capture_s = 0;
  double flop = 0;  // multiplications and additions of a voice's matrix products; 0: not counted
  int64_t parameters = 0;
  std::vector<KernelTime> kernels;
  double memory_bytes = 0, estimated_bytes = 0;  // of GPU memory: measured, and a voice's by StepMemory
};

StepTimes measure_step(const StepBench& bench);

// Each step on a batch of another length, padded to one of few shapes.
struct VaryingTimes {
  std::vector<double> step_ms;  // from step to step; the host never waits
  double capture_s = 0;
  double flop = 0;     // of a step, on average: the matrix products over what is not padding
  double audio_s = 0;  // in all steps, at 22,050 Hz and 256 samples a frame
  double padding = 0;  // share of the frames
  int64_t parameters = 0, shapes = 0, captures = 0;
};

// One step for each of `lengths`, in frames; its tokens are to bench.tokens as its frames are to bench.frames. The
// lengths share at most `most_shapes` shapes, chosen as training chooses them and captured before the first step.
VaryingTimes measure_varying_step(const StepBench& bench, const std::vector<int64_t>& lengths, int64_t most_shapes);

}  // namespace myxtts
