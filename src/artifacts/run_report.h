// A page about a run, finished or still running: what `metrics.jsonl` says, as charts and one sentence.
#pragma once

#include "artifacts/chart.h"

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace myxtts {

struct Picture {
  std::string name, title, png;
  int width = 0, height = 0;
};

struct Sound {
  std::string name, title, wav;
  int sample_rate = 0;
  int64_t samples = 0;
};

struct RunRecord {
  std::string name;
  // What each number of the lines was, by step. `captures` and `retraces` count from the start of the run; `step_ms`
  // and `input_wait_ms` are one step's, and the wait is part of the step.
  std::map<std::string, std::vector<Point>> metrics;
  std::vector<std::pair<std::string, std::string>> settings;  // in the order in which they are to be shown
  std::vector<Picture> pictures;
  std::vector<Sound> sounds;
};

// Reads `metrics.jsonl` of a run's folder; settings, pictures and sounds are for the caller to add. Where a run went
// back to a checkpoint, the later lines count. A line that is not whole is passed over: a run that is being written
// ends in one, and a run that broke off may have one in the middle. Throws Error when there is no such file.
RunRecord read_run(const std::filesystem::path& folder);

std::string make_run_report(const RunRecord& run);

}  // namespace myxtts
