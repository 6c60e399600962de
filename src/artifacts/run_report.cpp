#include "artifacts/run_report.h"

#include "artifacts/html_page.h"
#include "base/error.h"
#include "base/json.h"
#include "base/lines.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

const std::vector<Point>& points_of(const RunRecord& run, const std::string& metric) {
  static const std::vector<Point> none;
  const auto found = run.metrics.find(metric);
  return found == run.metrics.end() ? none : found->second;
}

std::vector<double> numbers_in(const Json& line, const char* key) {
  std::vector<double> numbers;
  if (!line.contains(key) || !line[key].is_array()) return numbers;
  for (const Json& value : line[key]) numbers.push_back(value.is_number() ? value.get<double>() : 0.0);
  return numbers;
}

// JSON has no NaN: a non-finite loss is written as null.
void take_line(RunRecord& run, const Json& line, double& last_step) {
  const double step = line["step"];
  if (step < last_step) {
    for (auto& [name, points] : run.metrics) std::erase_if(points, [&](const Point& point) { return point.x >= step; });
  }
  last_step = step;
  for (const auto& [name, value] : line.items()) {
    if (name == "step" || !(value.is_number() || value.is_null())) continue;
    std::vector<Point>& points = run.metrics[name];
    if (!points.empty() && points.back().x == step) points.pop_back();
    points.push_back({step, value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN()});
  }
}

double first_step(const RunRecord& run) {
  double step = std::numeric_limits<double>::infinity();
  for (const auto& [name, points] : run.metrics) {
    if (!points.empty()) step = std::min(step, points.front().x);
  }
  return step;
}

double last_step(const RunRecord& run) {
  double step = 0;
  for (const auto& [name, points] : run.metrics) {
    if (!points.empty()) step = std::max(step, points.back().x);
  }
  return step;
}

// A line covers the steps since the previous line; the first covers one step.
double total_of(std::span<const Point> points) {
  double total = 0, before = points.empty() ? 0 : points.front().x - 1;
  for (const Point& point : points) {
    if (std::isfinite(point.y)) total += point.y * (point.x - before);
    before = point.x;
  }
  return total;
}

std::string as_duration(double seconds) {
  if (seconds < 120) return fmt::format("{:.1f} seconds", seconds);
  if (seconds < 7200) return fmt::format("{:.1f} minutes", seconds / 60);
  return fmt::format("{:.1f} hours", seconds / 3600);
}

std::string in_one_sentence(const RunRecord& run) {
  if (run.metrics.empty()) return "No step has been logged yet.";
  const double first = first_step(run), last = last_step(run), step_ms = total_of(points_of(run, "step_ms"));
  std::string text = first <= 1 ? fmt::format("{} steps", last) : fmt::format("Steps {} to {}", first, last);
  if (step_ms > 0) text += fmt::format(" in {}", as_duration(step_ms / 1000));
  if (const auto& loss = points_of(run, "loss"); !loss.empty()) {
    text += fmt::format("; loss {:.4g} → {:.4g}", loss.front().y, loss.back().y);
  }
  if (const auto& loss = points_of(run, "validation_loss"); !loss.empty()) {
    text += fmt::format("; validation loss {:.4g} → {:.4g}", loss.front().y, loss.back().y);
  }
  if (const auto& retraces = points_of(run, "retraces"); !retraces.empty()) {
    text += fmt::format("; {} retrace{}", retraces.back().y, retraces.back().y == 1 ? "" : "s");
  }
  if (step_ms > 0 && !points_of(run, "input_wait_ms").empty()) {
    text += fmt::format("; {:.1f} % of the time spent waiting for input",
                        100 * total_of(points_of(run, "input_wait_ms")) / step_ms);
  }
  return text + ".";
}

struct ChartOfMetrics {
  const char* title;
  const char* unit;
  std::vector<std::pair<const char*, const char*>> metrics;  // key and legend
  bool log_y = false;
  std::string_view prefix = {};   // and every metric whose name begins so
  bool only_if_measured = false;  // on a CPU it never is
};

bool is_measured(const std::vector<Point>& points) {
  return std::ranges::any_of(points, [](const Point& point) { return std::isfinite(point.y); });
}

const std::vector<ChartOfMetrics>& charts() {
  static const std::vector<ChartOfMetrics> all = {
      {"Loss", "", {{"loss", "training"}, {"validation_loss", "validation"}}},
      {"Parts of the loss", "", {}, false, "loss_"},
      {"Mel-cepstral distortion of held-out clips", "dB", {{"validation_cepstral_distortion", "validation"}}},
      {"Parts of the validation loss", "", {}, false, "validation_"},
      {"Learning rate", "", {{"lr", "learning rate"}}},
      {"Gradient norm", "", {{"grad_norm", "gradient norm"}}, true},
      {"Step time", "ms", {{"step_ms", "step"}, {"input_wait_ms", "waiting for input"}}},
      {"Ranks", "ms", {{"slowest_rank_ms", "slowest rank's own time"}, {"ranks_wait_ms", "waiting for other ranks"}}},
      {"Clips per second", "", {{"samples_per_s", "samples"}}},
      {"Seconds of audio per second", "", {{"audio_s_per_s", "audio"}}},
      {"GPU busy", "share", {{"gpu_busy", "GPU busy"}}, false, {}, true},
      {"Padding", "share", {{"padding", "padding"}}},
      {"Captures and retraces", "count", {{"captures", "captures"}, {"retraces", "retraces"}}},
      {"Skipped updates", "count", {{"skipped", "skipped"}}},
  };
  return all;
}

}  // namespace

RunReader::RunReader(const fs::path& folder) : path_(folder / "metrics.jsonl") {
  run_.name = fs::absolute(folder).lexically_normal().filename().string();
}

const RunRecord& RunReader::read() {
  if (!fs::exists(path_)) {
    reject_input("report", "there is no {}", path_.string(),
                 way_out("give the folder that `train` wrote, its --checkpoint-dir"));
  }
  read_bytes_ = read_lines(
      path_, [this](const TextLine& line) { take(line.text); }, read_bytes_);
  run_.ranks = rank_sums_;
  for (RankTime& rank : run_.ranks) rank.own_ms /= rank_lines_, rank.input_wait_ms /= rank_lines_;
  std::erase_if(run_.metrics, [](const auto& metric) { return metric.second.empty(); });
  return run_;
}

void RunReader::take(std::string_view text) {
  const Json line = parse_json(text);
  if (!line.is_object() || !line.contains("step") || !line["step"].is_number()) return;
  take_line(run_, line, last_step_);
  add_ranks(numbers_in(line, "rank_ms"), numbers_in(line, "rank_input_wait_ms"));
}

void RunReader::add_ranks(std::span<const double> own_ms, std::span<const double> input_wait_ms) {
  if (own_ms.empty() || own_ms.size() != input_wait_ms.size()) return;
  if (own_ms.size() != rank_sums_.size()) rank_sums_.assign(own_ms.size(), {}), rank_lines_ = 0;
  for (size_t rank = 0; rank < own_ms.size(); ++rank) {
    rank_sums_[rank].own_ms += own_ms[rank], rank_sums_[rank].input_wait_ms += input_wait_ms[rank];
  }
  ++rank_lines_;
}

RunRecord read_run(const fs::path& folder) { return RunReader(folder).read(); }

SlowRank find_slow_rank(const std::vector<RankTime>& ranks) {
  std::vector<double> times;
  for (const RankTime& rank : ranks) times.push_back(rank.own_ms);
  SlowRank found;
  found.count = ranks.size();
  found.slowest = static_cast<size_t>(std::ranges::max_element(times) - times.begin());
  found.slowest_ms = times[found.slowest];
  std::ranges::sort(times);
  found.median_ms = times[(times.size() - 1) / 2];
  constexpr double much = 1.2;
  found.slow = found.slowest_ms > much * found.median_ms;
  const double waiting = 100 * ranks[found.slowest].input_wait_ms / std::max(1e-9, found.slowest_ms);
  found.sentence =
      found.slow ? fmt::format(
                       "Rank {} is slow: {:.1f} ms per step of its own, the median rank {:.1f}; {:.0f} % of it is "
                       "waiting for input.",
                       found.slowest, found.slowest_ms, found.median_ms, waiting)
                 : fmt::format("No rank is slow: {:.1f} ms per step in the median, {:.1f} on rank {}.", found.median_ms,
                               found.slowest_ms, found.slowest);
  return found;
}

namespace {

void add_ranks(HtmlPage& page, const std::vector<RankTime>& ranks) {
  page.section("Ranks");
  page.paragraph(find_slow_rank(ranks).sentence);
  std::vector<size_t> order(ranks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t rank) { return ranks[rank].own_ms; });
  constexpr size_t most = 64;  // the slowest first
  order.resize(std::min(order.size(), most));
  std::vector<TableRow> rows;
  for (const size_t rank : order) {
    rows.push_back({fmt::format("{}", rank), fmt::format("{:.1f} ms", ranks[rank].own_ms),
                    fmt::format("{:.1f} ms", ranks[rank].input_wait_ms)});
  }
  page.table({"rank", "its own time per step", "of it waiting for input"}, rows);
}

}  // namespace

std::string make_run_report(const RunRecord& run) {
  HtmlPage page(run.name.empty() ? "A run" : run.name);
  page.paragraph(in_one_sentence(run));
  std::set<std::string> charted = {"epoch", "ranks", "slowest_rank"};
  for (const ChartOfMetrics& wanted : charts()) {
    LineChart chart{wanted.title, "step", wanted.unit, {}, wanted.log_y};
    const auto add = [&](const std::string& metric, const std::string& name) {
      charted.insert(metric);
      const std::vector<Point>& points = points_of(run, metric);
      if (points.empty() || (wanted.only_if_measured && !is_measured(points))) return;
      chart.series.push_back({name, points});
    };
    for (const auto& [metric, name] : wanted.metrics) add(metric, name);
    for (const auto& [metric, points] : run.metrics) {
      const bool wanted_too = !wanted.prefix.empty() && metric.starts_with(wanted.prefix);
      if (wanted_too && !charted.contains(metric)) add(metric, metric.substr(wanted.prefix.size()));
    }
    if (!chart.series.empty()) page.chart(make_line_chart(chart));
  }
  // A metric that nobody gave a chart of its own is shown all the same.
  for (const auto& [metric, points] : run.metrics) {
    if (charted.contains(metric) || metric.starts_with("loader_")) continue;
    page.chart(make_line_chart({metric, "step", "", {{metric, points}}}));
  }
  if (!run.ranks.empty()) add_ranks(page, run.ranks);
  if (!run.pictures.empty()) page.section("Pictures");
  for (const Picture& picture : run.pictures) page.picture(picture.title, picture.png);
  if (!run.sounds.empty()) page.section("Sounds");
  for (const Sound& sound : run.sounds) page.sound(sound.title, sound.wav);
  if (!run.settings.empty()) {
    page.section("Settings");
    std::vector<TableRow> rows;
    for (const auto& [key, value] : run.settings) rows.push_back({key, value});
    page.table({"setting", "value"}, rows);
  }
  return std::move(page).finish();
}

}  // namespace myxtts
