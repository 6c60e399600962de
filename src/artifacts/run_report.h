// HTML report of a finished or running training run, from `metrics.jsonl`. Any thread.
#pragma once

#include "artifacts/chart.h"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
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

// A rank's own time per step, without waiting for others, and what of it was waiting for input: means over the lines
// since the number of ranks last changed.
struct RankTime {
  double own_ms = 0, input_wait_ms = 0;
};

struct RunRecord {
  std::string name;
  // Series by metric name; x is the step. `captures` and `retraces` are totals; `step_ms` and `input_wait_ms` are per
  // step, and step_ms includes the wait.
  std::map<std::string, std::vector<Point>> metrics;
  std::vector<RankTime> ranks;                                // none: one process
  std::vector<std::pair<std::string, std::string>> settings;  // in display order
  std::vector<Picture> pictures;
  std::vector<Sound> sounds;
};

// Reads `metrics.jsonl` of a run folder; the caller adds settings, pictures and sounds. If a run resumed from a
// checkpoint, later lines replace earlier ones. Skips incomplete lines, which a running or interrupted run may have.
// Throws Error if the file does not exist.
RunRecord read_run(const std::filesystem::path& folder);

// The same again and again while the run writes: each time only the lines since the last time are read. One thread.
class RunReader {
 public:
  explicit RunReader(const std::filesystem::path& folder);

  const RunRecord& read();

 private:
  void take(std::string_view text);
  void add_ranks(std::span<const double> own_ms, std::span<const double> input_wait_ms);

  const std::filesystem::path path_;
  RunRecord run_;
  uint64_t read_bytes_ = 0;
  double last_step_ = -std::numeric_limits<double>::infinity();
  std::vector<RankTime> rank_sums_;
  double rank_lines_ = 0;  // that the sums are of
};

// Which rank the others wait for, if there is one that takes much longer than the median.
struct SlowRank {
  size_t count = 0, slowest = 0;
  double slowest_ms = 0, median_ms = 0;
  bool slow = false;
  std::string sentence;
};
SlowRank find_slow_rank(const std::vector<RankTime>& ranks);  // not empty

std::string make_run_report(const RunRecord& run);

}  // namespace myxtts
