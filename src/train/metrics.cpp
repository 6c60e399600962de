#include "train/metrics.h"

#include "base/files.h"
#include "base/json.h"
#include "base/lines.h"

#include <cmath>
#include <limits>

namespace myxtts {

double StepMetrics::value(std::string_view name) const {
  for (const Metric& metric : values) {
    if (metric.name == name) return metric.value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

void StepMetrics::set(std::string_view name, double value) {
  for (Metric& metric : values) {
    if (metric.name == name) metric.value = value;
  }
}

std::string loss_tag(std::string_view loss) {
  constexpr std::string_view prefix = "loss_";
  return "loss/" + std::string(loss.starts_with(prefix) ? loss.substr(prefix.size()) : "total");
}

namespace {

void drop_later_lines(const std::filesystem::path& path, int64_t step) {
  if (!std::filesystem::exists(path)) return;
  std::string kept;
  read_lines(path, [&](const TextLine& line) {
    const nlohmann::json json = parse_json(line.text);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) return;
    if (json["step"].get<int64_t>() <= step) kept.append(line.text).push_back('\n');
  });
  write_file_atomically(path, kept);
}

}  // namespace

MetricsFile::MetricsFile(const std::filesystem::path& path, int64_t step)
    : file_((drop_later_lines(path, step), AppendFile::lines(path))) {}

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
  for (const auto& [name, values] : metrics.lists) json[name] = values;
  file_.append(json.dump() + "\n");
}

}  // namespace myxtts
