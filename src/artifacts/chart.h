// Charts as inline SVG for an HTML page. Text and lines use the CSS colours of the page, `--line-1` to `--line-6` with
// fallbacks, so that they suit light and dark themes. Lines also differ in dashes, for colour-blind readers. Any
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace myxtts {

struct Point {
  double x, y;
};

struct Series {
  std::string name;
  std::vector<Point> points;  // in ascending order of x
};

struct LineChart {
  std::string title, x_label, y_label;
  std::vector<Series> series;
  bool log_y = false;
  bool from_zero = false;  // the y axis starts at 0
};

// Skips values that are not finite, or not positive on a logarithmic axis, and prints their number in the chart.
std::string make_line_chart(const LineChart& chart);

// Downsamples to about `most` points; keeps the first, the last, and the min and max of each bucket.
std::vector<Point> thin_points(std::span<const Point> points, size_t most = 500);

struct HistogramBar {
  double from;  // lower edge; the upper edge is the next lower edge
  int64_t count;
};
std::string make_histogram(std::string_view title, std::string_view x_label, std::span<const HistogramBar> bars);

// Horizontal bars of shares from 0 to 1, each with a name and a note.
struct ShareBar {
  std::string name;
  double share;
  std::string note;
};
std::string make_share_bars(std::string_view title, std::span<const ShareBar> bars);

// Gantt chart: one strip per lane, one bar per interval of work. Overlapping bars of a lane are stacked.
struct TimelineBar {
  double from, to;
  std::string name;
};
struct TimelineLane {
  std::string name;
  size_t colour;                  // index of the page colour, from 0
  std::vector<TimelineBar> bars;  // sorted by `from`
};
// Draws the range from `from` to `to` only.
std::string make_timeline(std::string_view title, std::string_view x_label, std::span<const TimelineLane> lanes,
                          double from, double to);

}  // namespace myxtts
