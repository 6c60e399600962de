#include "diagnose/retracing.h"

#include "base/counted.h"
#include "diagnose/oscillation.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace myxtts {

std::vector<ConfigProblem> retracing_problems(const Config& config) {
  const DataConfig& data = config.data;
  const TrainingConfig& training = config.training;
  std::vector<ConfigProblem> problems;
  if (!data.pad_to_fixed_length) {
    problems.push_back({"data.pad_to_fixed_length", "static shapes are off: each new length is a new shape to capture",
                        "set data.pad_to_fixed_length: true, or pass --enable-static-shapes"});
    if (training.enable_graph_mode && !training.enable_eager_debug) {
      problems.push_back({"training.enable_graph_mode",
                          "graph mode is on without static shapes: nothing is captured, because nearly every batch "
                          "would need its own capture",
                          "turn static shapes on, or graph mode off"});
    }
  }
  if (!training.enable_graph_mode) {
    problems.push_back({"training.enable_graph_mode", "graph mode is off: the step is never captured",
                        training.optimization_level == "basic"
                            ? "set training.enable_graph_mode: true, or training.optimization_level: enhanced"
                            : "set training.enable_graph_mode: true"});
  }
  if (training.enable_eager_debug) {
    problems.push_back({"training.enable_eager_debug", "eager debugging is on: the step is never captured",
                        "set training.enable_eager_debug: false once the error is found"});
  }
  constexpr int64_t min_frames = 16;
  if (data.max_mel_frames > 0 && data.max_mel_frames < min_frames) {
    problems.push_back({"data.max_mel_frames", fmt::format("{} frames are shorter than any clip", data.max_mel_frames),
                        "remove it: it is derived from the corpus"});
  }
  return problems;
}

ConfigProblem problem_of_error(const Error& error) {
  return {error.setting().empty() ? "config" : error.setting(), error.message(), error.way_out()};
}

std::string retracing_verdict(const RetracingReport& report) {
  const std::string seen = fmt::format("{} in {}", counted(static_cast<uint64_t>(report.steps), "step"),
                                       counted(report.shapes.size(), "shape"));
  if (report.retraces > 0) {
    return fmt::format("Retracing: {} in {}, the first because of {}.",
                       counted(static_cast<uint64_t>(report.retraces), "retrace"), seen,
                       report.changes.empty() ? "its shape" : report.changes.front());
  }
  if (report.steps == 0) return fmt::format("The config cannot be used: {}.", report.problems.front().problem);
  if (!report.problems.empty()) {
    return fmt::format("No retrace in {}, but {}: {}.", seen,
                       report.problems.size() == 1 ? "the config has a problem" : "the config has problems",
                       report.problems.front().problem);
  }
  return fmt::format("No retracing: {}, all of them declared before the first{}.", seen,
                     report.captured ? " and captured once each" : "");
}

std::vector<std::string> retracing_lines(const RetracingReport& report) {
  std::vector<std::string> lines = {retracing_verdict(report), ""};
  lines.push_back(report.problems.empty() ? "  config: no problem" : "  config:");
  for (const ConfigProblem& one : report.problems) {
    lines.push_back(fmt::format("    {}: {}{}", one.key, one.problem, one.fix.empty() ? "" : "; " + one.fix));
  }
  if (report.steps == 0) return lines;
  lines.push_back(fmt::format("  corpus: {}", report.corpus));
  for (const SeenShape& shape : report.shapes) {
    lines.push_back(fmt::format("  shape: text [{}, {}], mel [{}, {}, {}]{}", shape.rows, shape.tokens, shape.rows,
                                shape.mel_frames, shape.n_mels, shape.declared ? "" : ", not declared"));
  }
  constexpr size_t max_lines = 5;
  for (size_t i = 0; i < std::min(max_lines, report.changes.size()); ++i) {
    lines.push_back(fmt::format("  retrace {}: {}", i + 1, report.changes[i]));
  }
  if (report.changes.size() > max_lines)
    lines.push_back(fmt::format("  ... and {} more", report.changes.size() - max_lines));
  const SummaryStats step = summarize(report.step_s);
  lines.push_back(fmt::format("  {} captures{}, {} retraces, {:.3f} s ± {:.3f} s per step", report.captures,
                              report.captured ? "" : " would be made on a GPU", report.retraces, step.mean, step.std));
  return lines;
}

nlohmann::ordered_json retracing_json(const RetracingReport& report) {
  using Json = nlohmann::ordered_json;
  Json problems = Json::array(), shapes = Json::array();
  for (const ConfigProblem& one : report.problems) {
    problems.push_back({{"key", one.key}, {"problem", one.problem}, {"fix", one.fix}});
  }
  for (const SeenShape& shape : report.shapes) {
    shapes.push_back({{"text", {shape.rows, shape.tokens}},
                      {"mel", {shape.rows, shape.mel_frames, shape.n_mels}},
                      {"declared", shape.declared}});
  }
  const SummaryStats step = summarize(report.step_s);
  return {{"config_ok", report.problems.empty()},
          {"problems", problems},
          {"shapes", shapes},
          {"steps", report.steps},
          {"captures", report.captures},
          {"retraces", report.retraces},
          {"changes", report.changes},
          {"mean_s", step.mean},
          {"std_s", step.std},
          {"captured", report.captured},
          {"verdict", retracing_verdict(report)}};
}

}  // namespace myxtts
