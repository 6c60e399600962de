// Charts as inline SVG for a page: text in the page's own colour, lines in the page's colours `--line-1` to `--line-6`
// (with a fallback of their own), so that they can be read on light and on dark. Lines differ in their dashes too, for
// eyes that do not tell the colours apart. Any thread.
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
  bool from_zero = false;  // the axis begins at 0, however far away the values are
};

// Values that cannot be drawn (not finite, or not above 0 on a logarithmic scale) are left out, and the chart says how
// many they are.
std::string make_line_chart(const LineChart& chart);

// At most about `most` points, in order, of which the first, the last and every stretch's least and largest are kept.
std::vector<Point> thin_points(std::span<const Point> points, size_t most = 500);

struct HistogramBar {
  double from;  // where the bar begins; it ends where the next begins
  int64_t count;
};
std::string make_histogram(std::string_view title, std::string_view x_label, std::span<const HistogramBar> bars);

// Shares from 0 to 1, one below the other, each with its name and a note.
struct ShareBar {
  std::string name;
  double share;
  std::string note;
};
std::string make_share_bars(std::string_view title, std::span<const ShareBar> bars);

// What went on at the same time: a strip for each lane, with a bar for each stretch of work. Bars of a lane that
// overlap lie one below the other.
struct TimelineBar {
  double from, to;
  std::string name;
};
struct TimelineLane {
  std::string name;
  size_t colour;                  // of the page's, from 0
  std::vector<TimelineBar> bars;  // in ascending order of their beginning
};
// Only what lies between `from` and `to` is drawn.
std::string make_timeline(std::string_view title, std::string_view x_label, std::span<const TimelineLane> lanes,
                          double from, double to);

}  // namespace myxtts
