// Predicts and reports retraces: repeated captures of the step, from the config and from real batches. Pure functions.
#pragma once

#include "base/error.h"
#include "settings/config.h"

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace myxtts {

struct ConfigProblem {
  std::string key, problem, fix;
};

// Settings of a valid config that prevent capturing the step once per shape.
std::vector<ConfigProblem> retracing_problems(const Config& config);

// An error of the config itself. Its key is "config" if the error names no setting.
ConfigProblem problem_of_error(const Error& error);

struct SeenShape {
  int64_t rows = 0, tokens = 0, mel_frames = 0, n_mels = 0;
  bool declared = false;
};

struct RetracingReport {
  std::vector<ConfigProblem> problems;
  std::vector<SeenShape> shapes;
  int64_t steps = 0, captures = 0, retraces = 0;
  std::vector<std::string> changes;  // "mel frames 312 instead of 296", one for each retrace
  std::vector<double> step_s;
  bool captured = false;  // on a GPU; on a CPU captures are only counted
  std::string corpus;

  bool healthy() const { return problems.empty() && retraces == 0; }
};

std::string retracing_verdict(const RetracingReport& report);
std::vector<std::string> retracing_lines(const RetracingReport& report);
nlohmann::ordered_json retracing_json(const RetracingReport& report);

}  // namespace myxtts
