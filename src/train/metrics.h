// Metrics of a run travel by name: whoever measures one names it, and it reaches metrics.jsonl, TensorBoard (with a
// tag) and the report page by itself; `loader_*` is shown by `diagnose report` instead. No libtorch here.
#pragma once

#include "base/append_file.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace myxtts {

struct Metric {
  std::string name;    // key in metrics.jsonl
  std::string tag;     // in TensorBoard; empty: not there
  double value = 0;    // not finite: null in metrics.jsonl, absent in TensorBoard
  bool whole = false;  // a count
};

// The metrics of one logged step, in the order in which they are written.
struct StepMetrics {
  int64_t step = 0;
  uint64_t epoch = 0;
  std::vector<Metric> values;
  std::vector<std::pair<std::string, std::vector<double>>> lists;  // a value per rank; in metrics.jsonl alone

  void add(std::string name, std::string tag, double value) {
    values.push_back({std::move(name), std::move(tag), value, false});
  }
  void add_count(std::string name, std::string tag, int64_t value) {
    values.push_back({std::move(name), std::move(tag), static_cast<double>(value), true});
  }
  // NaN if there is none of that name.
  double value(std::string_view name) const;
  void set(std::string_view name, double value);  // of one that is there
};

// "loss_prior" -> "loss/prior", "loss" -> "loss/total".
std::string loss_tag(std::string_view loss);

// metrics.jsonl: one object per logged step, whole lines only.
class MetricsFile {
 public:
  // Resumes after `step`: later lines, of a run that was cut off, are removed.
  MetricsFile(const std::filesystem::path& path, int64_t step);

  void add(const StepMetrics& metrics);

 private:
  AppendFile file_;
};

}  // namespace myxtts
