// metrics.jsonl: one object a logged step, whole lines only.
#pragma once

#include "train/step.h"

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

namespace myxtts {

// What is known of the steps since the last that was logged.
struct StepReport {
  int64_t step = 0;
  uint64_t epoch = 0;
  StepFigures figures;
  double learning_rate = 0;
  double step_ms = 0, input_wait_ms = 0;  // means
  std::optional<double> gpu_busy;         // share of the time; nothing on a CPU
  int64_t captures = 0, retraces = 0;
  double samples_per_s = 0, audio_s_per_s = 0;
  double padding = 0;  // share of the frames
};

class MetricsFile {
 public:
  // Goes on after `step`: later lines, of a run that was cut off, are removed.
  MetricsFile(const std::filesystem::path& path, int64_t step);

  void step(const StepReport& report);
  void validation(int64_t step, uint64_t epoch, const StepFigures& figures);

 private:
  void line(const std::string& text);

  std::filesystem::path path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, std::fclose};
};

}  // namespace myxtts
