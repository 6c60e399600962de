#include "diagnose/page.h"

#include "artifacts/chart.h"
#include "artifacts/html_page.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace myxtts {
namespace {

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string milliseconds(double ms) { return ms < 10 ? fmt::format("{:.1f} ms", ms) : fmt::format("{:.0f} ms", ms); }

std::vector<PageMetric> key_metrics(const Diagnosis& found) {
  std::vector<PageMetric> all = {
      {"Batch time", milliseconds(found.batch_ms.mean), fmt::format("std/mean {:.2f}", found.batch_ms.cv)},
      {"Waiting for data", percent(found.input_wait_fraction),
       found.input_bound == InputBound::no           ? "not input-bound"
       : found.input_bound == InputBound::moderately ? "moderately input-bound"
                                                     : "highly input-bound"}};
  if (!found.stages.empty()) {
    all.push_back({"Limiting stage", std::string(name_of(found.limits)),
                   found.limits == Stage::consumer ? "as it should be"
                                                   : fmt::format("{:.1f} x the consumer's time", found.limits_by)});
  }
  if (found.headroom) {
    all.push_back({"Headroom", fmt::format("{:.2f} x", *found.headroom), "if data were free"});
  }
  if (found.gpu_busy) all.push_back({"GPU busy", percent(*found.gpu_busy), "of the time"});
  if (found.period_batches) {
    all.push_back({"Period", fmt::format("{:.1f}", *found.period_batches), "batches between stalls"});
  }
  return all;
}

void recommendations_table(HtmlPage& page, const Diagnosis& found) {
  page.section("Recommendations");
  if (found.recommendations.empty()) {
    page.paragraph(found.healthy ? "Nothing to change." : "No setting would help; see the check-list.");
    return;
  }
  std::vector<TableRow> rows;
  for (const Recommendation& one : found.recommendations) {
    rows.push_back({one.setting, one.current, one.proposed, one.gain ? fmt::format("{:.1f} x", *one.gain) : "unknown",
                    one.reason});
  }
  page.table({"setting", "now", "try", "faster, at most", "reason"}, rows, "What to try, in this order");
}

void checks_table(HtmlPage& page, const Diagnosis& found) {
  if (found.checks.empty()) return;
  page.section("Check-list");
  std::vector<TableRow> rows;
  for (const Check& check : found.checks) {
    rows.push_back({check.name, std::string(name_of(check.state)), check.value, check.advice});
  }
  page.table({"check", "state", "value", "action"}, rows, "Settings and the machine");
}

void stages_table(HtmlPage& page, const Diagnosis& found) {
  if (found.stages.empty()) return;
  std::vector<TableRow> rows;
  for (const StageLoad& load : found.stages) {
    rows.push_back({std::string(name_of(load.stage)), percent(load.busy),
                    load.ms_per_batch ? milliseconds(*load.ms_per_batch) : "not measured",
                    load.stage == found.limits ? "limits" : ""});
  }
  page.section("Stages");
  page.table({"stage", "busy", "work per batch", "note"}, rows,
             "Utilisation of whoever runs the stage, and its total work per batch");
}

// Time axis of an observation: milliseconds from its start.
struct Clock {
  int64_t start_ns;
  double at(int64_t ns) const { return static_cast<double>(ns - start_ns) * 1e-6; }
};

std::string stages_timeline(const Observation& observation, const Clock& clock) {
  constexpr size_t shown = 24;
  std::vector<TimelineLane> lanes = {
      {"read and decode", 0, {}}, {"hand over", 5, {}}, {"consumer waits", 1, {}}, {"consumer works", 2, {}}};
  for (size_t i = 0; i < observation.batches.size(); ++i) {
    const ObservedBatch& batch = observation.batches[i];
    const BatchTimes& times = batch.times;
    const auto add = [&](size_t lane, double from, double to, const char* what) {
      if (to > from)
        lanes[lane].bars.push_back({from, to, fmt::format("batch {}: {} {}", i + 1, what, milliseconds(to - from))});
    };
    add(0, clock.at(times.reading_ns), clock.at(times.rows_done_ns), "rows in");
    add(1, clock.at(times.rows_done_ns), clock.at(times.finished_ns), "handed over in");
    const double asked = clock.at(batch.asked_ns);
    add(2, asked, asked + batch.wait_ms, "waited for");
    add(3, clock.at(batch.taken_ns), clock.at(batch.done_ns), "consumed in");
  }
  const ObservedBatch& last = observation.batches[std::min(shown, observation.batches.size()) - 1];
  return make_timeline("Timeline of the stages", "ms from the first batch", lanes, 0, clock.at(last.done_ns));
}

// Utilisation per time bin; `weight` is the share of a worker that the work occupies.
class BusyOverTime {
 public:
  BusyOverTime(double length_ms, size_t stretches)
      : width_ms_(length_ms / static_cast<double>(stretches)), sums_(stretches) {}

  void add(double from_ms, double to_ms, double weight) {
    for (size_t i = 0; i < sums_.size(); ++i) {
      const double begin = static_cast<double>(i) * width_ms_;
      const double shared = std::min(to_ms, begin + width_ms_) - std::max(from_ms, begin);
      if (shared > 0) sums_[i] += weight * shared / width_ms_;
    }
  }

  // Bins that end by `known_ms`.
  std::vector<Point> points(double known_ms) const {
    std::vector<Point> points;
    for (size_t i = 0; i < sums_.size() && static_cast<double>(i + 1) * width_ms_ <= known_ms + 1e-6; ++i) {
      points.push_back({(static_cast<double>(i) + 0.5) * width_ms_, 100 * std::min(1.0, sums_[i])});
    }
    return points;
  }

 private:
  double width_ms_;
  std::vector<double> sums_;
};

std::string busy_chart(const Observation& observation, const PipelineSetup& setup, const Clock& clock) {
  const double length_ms = clock.at(observation.batches.back().done_ns);
  const size_t stretches = std::clamp<size_t>(observation.batches.size() / 2, 4, 60);
  BusyOverTime workers(length_ms, stretches), consumer(length_ms, stretches);
  for (const ObservedBatch& batch : observation.batches) {
    const double from = clock.at(batch.times.reading_ns), to = clock.at(batch.times.rows_done_ns);
    const double work_ms = 1e3 * (batch.times.read_s + batch.times.decode_s + batch.times.features_s);
    if (to > from) workers.add(from, to, work_ms / (to - from) / static_cast<double>(setup.workers));
    consumer.add(clock.at(batch.taken_ns), clock.at(batch.done_ns), 1);
  }
  LineChart chart{"Busy over time", "ms from the first batch", "%", {}, false, true};
  // Later work was for batches that were not consumed.
  const double known_ms = clock.at(observation.batches.back().times.rows_done_ns);
  chart.series = {{"consumer", consumer.points(length_ms)}, {"workers", workers.points(known_ms)}};
  return make_line_chart(chart);
}

std::string time_histogram(std::string_view title, std::span<const double> values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  constexpr size_t bars = 16;
  const double width = std::max((*most - *least) / static_cast<double>(bars), 1e-3);
  std::vector<HistogramBar> histogram;
  for (size_t i = 0; i < bars; ++i) {
    histogram.push_back({std::round((*least + static_cast<double>(i) * width) * 10) / 10, 0});
  }
  for (const double value : values) {
    ++histogram[std::min(bars - 1, static_cast<size_t>((value - *least) / width))].count;
  }
  return make_histogram(title, "ms", histogram);
}

std::string batch_chart(const Observation& observation) {
  LineChart chart{"Batch by batch", "batch", "ms", {{"waiting", {}}, {"consuming", {}}}, false, true};
  for (size_t i = 0; i < observation.batches.size(); ++i) {
    chart.series[0].points.push_back({static_cast<double>(i + 1), observation.batches[i].wait_ms});
    chart.series[1].points.push_back({static_cast<double>(i + 1), observation.batches[i].consume_ms()});
  }
  return make_line_chart(chart);
}

std::string ring_chart(const Observation& observation, const PipelineSetup& setup) {
  LineChart chart{
      "Batches ready in the ring", "batch", fmt::format("of {}", setup.ring_batches), {{"ready", {}}}, false, true};
  for (size_t i = 0; i < observation.batches.size(); ++i) {
    chart.series[0].points.push_back(
        {static_cast<double>(i + 1), static_cast<double>(observation.batches[i].ready_batches)});
  }
  return make_line_chart(chart);
}

std::string padding_chart(const Observation& observation, const std::vector<Shape>& shapes) {
  struct Sum {
    int64_t batches = 0, frames = 0, true_frames = 0;
  };
  std::map<size_t, Sum> by_shape;
  for (const ObservedBatch& batch : observation.batches) {
    Sum& sum = by_shape[batch.shape];
    ++sum.batches, sum.frames += batch.frames, sum.true_frames += batch.true_frames;
  }
  std::vector<ShareBar> bars;
  for (const auto& [shape, sum] : by_shape) {
    const double share =
        1 - static_cast<double>(sum.true_frames) / static_cast<double>(std::max<int64_t>(1, sum.frames));
    const std::string name = shape < shapes.size() ? fmt::format("{} x {} x {}", shapes[shape].batch_size,
                                                                 shapes[shape].text_length, shapes[shape].mel_frames)
                                                   : fmt::format("shape {}", shape + 1);
    bars.push_back({name, share, fmt::format("{} in {} batches", percent(share), sum.batches)});
  }
  return make_share_bars("Padding by shape: clips x tokens x mel frames", bars);
}

}  // namespace

std::string make_diagnosis_page(const Diagnosis& found, const DiagnosisPage& wanted) {
  HtmlPage page(wanted.title);
  page.verdict(found.healthy, found.healthy ? "No problem found" : "A problem was found", found.verdict);
  page.metrics(key_metrics(found));
  page.list(found.findings);
  recommendations_table(page, found);
  checks_table(page, found);
  stages_table(page, found);
  page.section("Charts");
  for (const std::string& svg : wanted.charts) page.chart(svg);
  page.section("Subject");
  std::vector<TableRow> rows;
  for (const auto& [name, value] : wanted.facts) rows.push_back({name, value});
  page.table({"what", "value"}, rows, "The run");
  return std::move(page).finish();
}

std::vector<std::string> observation_charts(const Observation& observation, const PipelineSetup& setup,
                                            const std::vector<Shape>& shapes) {
  if (observation.batches.empty()) return {};
  const Clock clock{observation.batches.front().asked_ns};
  std::vector<double> batch_ms;
  for (const ObservedBatch& batch : observation.batches) batch_ms.push_back(batch.batch_ms());
  if (!setup.stages_known) return {time_histogram("Batch times", batch_ms), batch_chart(observation)};
  return {stages_timeline(observation, clock),     busy_chart(observation, setup, clock),
          time_histogram("Batch times", batch_ms), batch_chart(observation),
          ring_chart(observation, setup),          padding_chart(observation, shapes)};
}

std::vector<std::string> run_charts(const RunRecord& run) {
  std::vector<std::string> charts;
  const auto points = [&](const char* metric) {
    const auto found = run.metrics.find(metric);
    return found == run.metrics.end() ? std::vector<Point>() : found->second;
  };
  const auto shares = [&](const char* title, const std::vector<std::pair<const char*, const char*>>& metrics) {
    LineChart chart{title, "step", "%", {}, false, true};
    for (const auto& [metric, name] : metrics) {
      Series series{name, points(metric)};
      std::erase_if(series.points, [](const Point& point) { return !std::isfinite(point.y); });  // as on a CPU
      for (Point& point : series.points) point.y *= 100;
      if (!series.points.empty()) chart.series.push_back(std::move(series));
    }
    if (!chart.series.empty()) charts.push_back(make_line_chart(chart));
  };
  LineChart steps{"Step by step", "step", "ms", {{"step", points("step_ms")}, {"waiting", points("input_wait_ms")}},
                  false,          true};
  charts.push_back(make_line_chart(steps));
  std::vector<double> step_ms;
  for (const Point& point : points("step_ms")) {
    if (std::isfinite(point.y)) step_ms.push_back(point.y);
  }
  if (!step_ms.empty()) charts.push_back(time_histogram("Step times", step_ms));
  shares("GPU busy over time", {{"gpu_busy", "GPU busy"}});
  shares("Workers of the loader, by what they do",
         {{"loader_reading", "reading"}, {"loader_decoding", "decoding"}, {"loader_features", "features"}});
  if (!points("loader_ready").empty()) {
    charts.push_back(make_line_chart(
        {"Batches ready in the ring", "step", "batches", {{"ready", points("loader_ready")}}, false, true}));
  }
  shares("Padding over time", {{"padding", "padding"}});
  LineChart captures{"Captures and retraces",
                     "step",
                     "",
                     {{"captures", points("captures")}, {"retraces", points("retraces")}},
                     false,
                     true};
  if (!captures.series[0].points.empty()) charts.push_back(make_line_chart(captures));
  return charts;
}

}  // namespace myxtts
