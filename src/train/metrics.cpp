#include "train/metrics.h"

#include "base/error.h"
#include "base/files.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include <nlohmann/json.hpp>

namespace myxtts {

double StepMetrics::value(std::string_view name) const {
  for (const Metric& metric : values) {
    if (metric.name == name) return metric.value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

std::string loss_tag(std::string_view loss) {
  constexpr std::string_view prefix = "loss_";
  return "loss/" + std::string(loss.starts_with(prefix) ? loss.substr(prefix.size()) : "total");
}

MetricsFile::MetricsFile(const std::filesystem::path& path, int64_t step) : path_(path) {
  if (std::filesystem::exists(path)) {
    std::ifstream in(path);
    std::string kept, line;
    while (std::getline(in, line)) {
      const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
      if (json.is_object() && json.value("step", int64_t{0}) <= step) kept += line + "\n";
    }
    write_file_atomically(path, kept);
  }
  file_.reset(std::fopen(path.c_str(), "a"));
  if (!file_) fail("metrics", "{}: {}", path.string(), std::strerror(errno));
}

void MetricsFile::add(const StepMetrics& metrics) {
  nlohmann::ordered_json json;
  json["step"] = metrics.step;
  json["epoch"] = metrics.epoch;
  for (const Metric& metric : metrics.values) {
    if (!std::isfinite(metric.value)) {
      json[metric.name] = nullptr;
    } else if (metric.whole) {
      json[metric.name] = static_cast<int64_t>(metric.value);
    } else {
      json[metric.name] = metric.value;
    }
  }
  // A full disk must not end a run: what is missing here is in TensorBoard's file, or lost.
  const std::string line = json.dump() + "\n";
  std::fwrite(line.data(), 1, line.size(), file_.get());
  std::fflush(file_.get());
}

}  // namespace myxtts
