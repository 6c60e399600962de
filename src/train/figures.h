// What a step and a run report. No libtorch here: the program and its reports know figures, not tensors.
#pragma once

#include <cstdint>
#include <optional>

namespace myxtts {

// Read once the device is done with the step.
struct StepFigures {
  double loss = 0, prior = 0, duration = 0, flow = 0;
  double gradient_norm = 0;
  double skipped_in_a_row = 0, skipped_total = 0;  // updates
};

// What is known of the steps since the last that was logged.
struct StepReport {
  int64_t step = 0;
  uint64_t epoch = 0;
  StepFigures figures;
  double learning_rate = 0;
  double step_ms = 0, input_wait_ms = 0;  // means
  std::optional<double> gpu_busy;         // share of the time; nothing on a CPU
  std::optional<double> gpu_utilisation;  // what the driver says at the time, as a share
  int64_t captures = 0, retraces = 0;
  double samples_per_s = 0, audio_s_per_s = 0;
  double padding = 0;  // share of the frames
  // Shares of the loader's workers' time, and batches that were ready when the line was written.
  double loader_reading = 0, loader_decoding = 0, loader_features = 0;
  int64_t loader_ready = 0;
};

}  // namespace myxtts
