// metrics.jsonl: one object a logged step, whole lines only.
#pragma once

#include "train/figures.h"

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

namespace myxtts {

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
