#include "train/metrics.h"

#include "base/error.h"
#include "base/files.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>

#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

}  // namespace

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

void MetricsFile::line(const std::string& text) {
  // A full disk must not end a run: what is missing here is in TensorBoard's file, or lost.
  std::fwrite((text + "\n").data(), 1, text.size() + 1, file_.get());
  std::fflush(file_.get());
}

void MetricsFile::step(const StepReport& report) {
  nlohmann::ordered_json json;
  json["step"] = report.step;
  json["epoch"] = report.epoch;
  json["loss"] = number(report.figures.loss);
  json["loss_prior"] = number(report.figures.prior);
  json["loss_duration"] = number(report.figures.duration);
  json["loss_flow"] = number(report.figures.flow);
  json["lr"] = report.learning_rate;
  json["grad_norm"] = number(report.figures.gradient_norm);
  json["step_ms"] = report.step_ms;
  json["input_wait_ms"] = report.input_wait_ms;
  json["gpu_busy"] = report.gpu_busy ? nlohmann::ordered_json(*report.gpu_busy) : nlohmann::ordered_json();
  if (report.gpu_utilisation) json["gpu_utilisation"] = *report.gpu_utilisation;
  json["captures"] = report.captures;
  json["retraces"] = report.retraces;
  json["samples_per_s"] = report.samples_per_s;
  json["audio_s_per_s"] = report.audio_s_per_s;
  json["padding"] = report.padding;
  json["loader_reading"] = report.loader_reading;
  json["loader_decoding"] = report.loader_decoding;
  json["loader_features"] = report.loader_features;
  json["loader_ready"] = report.loader_ready;
  json["skipped"] = report.figures.skipped_total;
  line(json.dump());
}

void MetricsFile::validation(int64_t step, uint64_t epoch, const StepFigures& figures) {
  nlohmann::ordered_json json;
  json["step"] = step;
  json["epoch"] = epoch;
  json["validation_loss"] = number(figures.loss);
  json["validation_prior"] = number(figures.prior);
  json["validation_duration"] = number(figures.duration);
  json["validation_flow"] = number(figures.flow);
  line(json.dump());
}

}  // namespace myxtts
