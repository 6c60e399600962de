// A GPU's readings as a person sees them: one plain line, or a panel on the terminal that is redrawn in place with a
// chart of the last minute.
#pragma once

#include "diagnose/gpu_watch.h"

#include <span>
#include <string>
#include <vector>

namespace myxtts {

// "utilisation 97 %, SM 88 %, tensor 41 %, memory 12.3 of 140.4 GB, ..."; what the card does not report is left out.
std::string gpu_line(const GpuSample& sample, const GpuLimits& limits);

// The last minute before `now_s`, from the left to the right, in block characters: SM activity where the card counts
// it, else utilisation. Top row first.
std::vector<std::string> gpu_chart(std::span<const TimedSample> samples, double now_s, size_t columns, size_t rows);

class GpuPanel {
 public:
  GpuPanel(std::string title, const GpuLimits& limits) : title_(std::move(title)), limits_(limits) {}

  void draw(std::span<const TimedSample> samples, double until_s);  // on standard output; 0: without an end

 private:
  std::string title_;
  GpuLimits limits_;
  size_t lines_ = 0;  // drawn before
};

}  // namespace myxtts
