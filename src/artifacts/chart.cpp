#include "artifacts/chart.h"

#include "artifacts/html_page.h"

#include <array>
#include <cmath>

namespace myxtts {
namespace {

// Beside `right` there is room for half a label of eight digits, 8 wide each in the widest usual font.
constexpr double width = 720, height = 280, left = 64, right = 688, top = 52, bottom = 240;

// 1, 2 or 5 times a power of ten.
double round_step(double about) {
  const double power = std::pow(10, std::floor(std::log10(about)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= about * 0.999) return factor * power;
  }
  return 10 * power;
}

std::vector<double> round_ticks(double low, double high, double about_ticks) {
  const double step = round_step((high - low) / about_ticks);
  std::vector<double> ticks;
  const double last = std::floor(high / step + 1e-9);
  for (double i = std::ceil(low / step - 1e-9); i <= last; ++i) ticks.push_back(i * step + 0.0);  // no "-0"
  return ticks;
}

std::vector<double> round_log_ticks(double low, double high) {
  const double decades = std::log10(high / low);
  const double step = std::max(1.0, std::ceil(decades / 8));
  std::vector<double> ticks;
  for (double power = std::floor(std::log10(low)); power <= std::log10(high); power += step) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * std::pow(10, power);
      if ((factor == 1 || decades < 2.5) && tick >= low && tick <= high) ticks.push_back(tick);
    }
  }
  return ticks.size() >= 2 ? ticks : round_ticks(low, high, 5);
}

std::string number(double value) { return fmt::format("{:.7g}", value); }

// Values to places on the paper.
struct Axis {
  double low = 0, high = 1, from = 0, to = 1;
  bool logarithmic = false;

  double place(double value) const {
    const double share = logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    return from + share * (to - from);
  }

  std::vector<double> ticks(double about) const {
    return logarithmic ? round_log_ticks(low, high) : round_ticks(low, high, about);
  }

  // A constant is drawn in the middle.
  void make_room() {
    if (high - low > 1e-9 * std::abs(low)) return;
    const double room = low == 0 ? 1 : std::abs(low) / 2;
    low -= room, high += room;
  }
};

std::string start_svg(std::string_view title, std::string_view description, double tall = height) {
  return fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" font-family=\"system-ui,sans-serif\" font-size=\"12\" "
      "fill=\"currentColor\"><title>{}</title><desc>{}</desc>"
      "<text x=\"{}\" y=\"18\" font-size=\"15\" font-weight=\"600\">{}</text>\n",
      width, tall, escape_html(title), escape_html(title), escape_html(description), left, escape_html(title));
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", x, y, anchor, escape_html(text));
}

std::string rule(double x1, double y1, double x2, double y2, double opacity) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"currentColor\" "
      "stroke-opacity=\"{}\"/>",
      x1, y1, x2, y2, opacity);
}

std::string draw_axes(const LineChart& chart, const Axis& x, const Axis& y) {
  std::string svg;
  for (const double tick : y.ticks(5)) {
    svg += rule(left, y.place(tick), right, y.place(tick), 0.15);
    svg += text_at(left - 6, y.place(tick) + 4, "end", number(tick));
  }
  for (const double tick : x.ticks(8)) {
    svg += rule(x.place(tick), bottom, x.place(tick), bottom + 4, 0.6);
    svg += text_at(x.place(tick), bottom + 18, "middle", number(tick));
  }
  svg += rule(left, bottom, right, bottom, 0.6);
  svg += text_at((left + right) / 2, bottom + 36, "middle", chart.x_label);
  const std::string gap = chart.y_label.empty() || !chart.log_y ? "" : ", ";
  const std::string unit = chart.y_label + gap + (chart.log_y ? "logarithmic" : "");
  return svg + text_at(right, 18, "end", unit) + "\n";
}

// As the value of a style; the page's colour, or one of our own where the page has none.
std::string colour_of(size_t number_of_series) {
  static constexpr std::array<const char*, 6> colours = {"#2563c9", "#c2410c", "#15803d",
                                                         "#7e3fb5", "#a16207", "#0e7490"};
  const size_t i = number_of_series % colours.size();
  return fmt::format("var(--line-{},{})", i + 1, colours[i]);
}

std::string stroke_of(size_t number_of_series) {
  static constexpr std::array<const char*, 6> dashes = {"none", "7 3", "2 3", "10 3 2 3", "4 2", "12 4"};
  return fmt::format("fill=\"none\" stroke-width=\"1.7\" stroke-dasharray=\"{}\" style=\"stroke:{}\"",
                     dashes[number_of_series % dashes.size()], colour_of(number_of_series));
}

std::string draw_series(const Series& series, size_t order, const Axis& x, const Axis& y) {
  constexpr size_t few = 40;  // so few that each is worth a dot
  const std::vector<Point> points = thin_points(series.points);
  std::string places, dots;
  for (const Point& point : points) {
    places += fmt::format("{:.1f},{:.1f} ", x.place(point.x), y.place(point.y));
    if (points.size() <= few) {
      dots +=
          fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.6\" style=\"fill:{}\"><title>{}: {}</title></circle>",
                      x.place(point.x), y.place(point.y), colour_of(order), number(point.x), number(point.y));
    }
  }
  return fmt::format("<polyline points=\"{}\" stroke-linejoin=\"round\" {}/>{}\n", places, stroke_of(order), dots);
}

std::string draw_legend(std::span<const Series> series) {
  std::string svg;
  double x = left;
  for (size_t i = 0; i < series.size(); ++i) {
    svg +=
        fmt::format("<path d=\"M{:.0f} 34h24\" {}/>", x, stroke_of(i)) + text_at(x + 30, 38, "start", series[i].name);
    x += 52 + 7.0 * static_cast<double>(series[i].name.size());
  }
  return svg;
}

// What can be drawn of a chart, and how much cannot.
struct Drawable {
  std::vector<Series> series;
  size_t left_out = 0;

  explicit Drawable(const LineChart& chart) {
    constexpr double largest = 1e300;  // differences stay finite
    for (const Series& given : chart.series) {
      Series& kept = series.emplace_back(Series{given.name, {}});
      for (const Point& point : given.points) {
        const bool fits = std::abs(point.y) < largest && std::abs(point.x) < largest && (point.y > 0 || !chart.log_y);
        if (fits) kept.points.push_back(point);
      }
      left_out += given.points.size() - kept.points.size();
    }
    std::erase_if(series, [](const Series& one) { return one.points.empty(); });
  }
};

std::string describe(const Drawable& drawable) {
  std::string text;
  for (const Series& series : drawable.series) {
    text += fmt::format("{}: {} points, from {:.4g} to {:.4g}. ", series.name, series.points.size(),
                        series.points.front().y, series.points.back().y);
  }
  return text;
}

}  // namespace

std::vector<Point> thin_points(std::span<const Point> points, size_t most) {
  if (points.size() <= std::max<size_t>(most, 4)) return {points.begin(), points.end()};
  const size_t stretches = std::max<size_t>(most / 2, 2) - 1;
  const std::span<const Point> inner = points.subspan(1, points.size() - 2);
  std::vector<Point> kept = {points.front()};
  for (size_t i = 0; i < stretches; ++i) {
    const size_t begin = inner.size() * i / stretches, end = inner.size() * (i + 1) / stretches;
    if (begin == end) continue;
    const auto stretch = inner.subspan(begin, end - begin);
    auto [least, most_of] =
        std::minmax_element(stretch.begin(), stretch.end(), [](const Point& a, const Point& b) { return a.y < b.y; });
    if (least > most_of) std::swap(least, most_of);  // now by place
    kept.push_back(*least);
    if (least != most_of) kept.push_back(*most_of);
  }
  kept.push_back(points.back());
  return kept;
}

std::string make_line_chart(const LineChart& chart) {
  const Drawable drawable(chart);
  std::string svg = start_svg(chart.title, describe(drawable));
  if (drawable.series.empty()) {
    svg += text_at((left + right) / 2, (top + bottom) / 2, "middle", "no values yet");
  } else {
    const Point& any = drawable.series[0].points[0];
    Axis x{any.x, any.x, left, right, false}, y{any.y, any.y, bottom, top, chart.log_y};
    for (const Series& series : drawable.series) {
      for (const Point& point : series.points) {
        x.low = std::min(x.low, point.x), x.high = std::max(x.high, point.x);
        y.low = std::min(y.low, point.y), y.high = std::max(y.high, point.y);
      }
    }
    if (chart.from_zero && !chart.log_y) y.low = std::min(0.0, y.low);
    x.make_room(), y.make_room();
    svg += draw_axes(chart, x, y);
    for (size_t i = 0; i < drawable.series.size(); ++i) svg += draw_series(drawable.series[i], i, x, y);
    if (drawable.series.size() > 1) svg += draw_legend(drawable.series);
  }
  if (drawable.left_out > 0) {
    svg += text_at(right, bottom + 36, "end", fmt::format("{} values cannot be drawn", drawable.left_out));
  }
  return svg + "</svg>";
}

std::string make_histogram(std::string_view title, std::string_view x_label, std::span<const HistogramBar> bars) {
  constexpr size_t most_labels = 16;
  int64_t largest = 1, total = 0;
  for (const HistogramBar& bar : bars) largest = std::max(largest, bar.count), total += bar.count;
  std::string svg = start_svg(title, fmt::format("{} in {} bars, at most {} in one", total, bars.size(), largest));
  const double step = (right - left) / static_cast<double>(std::max<size_t>(bars.size(), 1));
  const size_t label_every = bars.size() / most_labels + 1;
  for (size_t i = 0; i < bars.size(); ++i) {
    const double x = left + static_cast<double>(i) * step;
    const double tall = static_cast<double>(bars[i].count) * (bottom - top) / static_cast<double>(largest);
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" style=\"fill:{}\">"
        "<title>{}+: {}</title></rect>",
        x + step * 0.04, bottom - tall, step * 0.92, tall, colour_of(0), number(bars[i].from), bars[i].count);
    if (i % label_every != 0) continue;
    svg += text_at(x + step / 2, bottom - tall - 4, "middle", fmt::format("{}", bars[i].count));
    svg += text_at(x + step / 2, bottom + 18, "middle", number(bars[i].from)) + "\n";
  }
  svg += rule(left, bottom, right, bottom, 0.6);
  return svg + text_at((left + right) / 2, bottom + 36, "middle", x_label) + "</svg>";
}

std::string make_share_bars(std::string_view title, std::span<const ShareBar> bars) {
  constexpr double row = 26, first = 40, name_end = 150, bar_end = 500;
  std::string text;
  for (const ShareBar& bar : bars) text += fmt::format("{}: {:.0f} %. ", bar.name, 100 * bar.share);
  std::string svg = start_svg(title, text, first + row * static_cast<double>(bars.size()) + 8);
  double y = first;
  for (const ShareBar& bar : bars) {
    const double share = std::clamp(bar.share, 0.0, 1.0);
    svg += text_at(name_end - 10, y + 14, "end", bar.name);
    svg += fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"16\" rx=\"3\" fill-opacity=\"0.12\"/>",
                       name_end, y + 2, bar_end - name_end);
    svg += fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"16\" rx=\"3\" style=\"fill:{}\"/>",
                       name_end, y + 2, share * (bar_end - name_end), colour_of(0));
    svg += text_at(bar_end + 10, y + 14, "start", bar.note) + "\n";
    y += row;
  }
  return svg + "</svg>";
}

std::string make_timeline(std::string_view title, std::string_view x_label, std::span<const TimelineLane> lanes,
                          double from, double to) {
  constexpr double start = 150, thick = 12, gap = 3, lane_gap = 14, first = 44;
  const Axis x{from, std::max(to, from + 1e-9), start, right, false};
  std::string drawn, text;
  double y = first;
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    std::vector<double> ends;  // of each row's last bar
    double worked = 0;
    for (size_t i = 0; i < lanes[lane].bars.size(); ++i) {
      const TimelineBar& bar = lanes[lane].bars[i];
      if (bar.to <= from || bar.from >= to) continue;
      const double begin = std::max(bar.from, from), end = std::min(bar.to, to);
      worked += end - begin;
      size_t row = 0;
      while (row < ends.size() && ends[row] > begin + 1e-9) ++row;
      if (row == ends.size()) ends.push_back(0);
      ends[row] = end;
      // Neighbours differ a little, so that one can tell them apart.
      drawn += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" rx=\"1.5\" style=\"fill:{}\" "
          "fill-opacity=\"{}\"><title>{}</title></rect>",
          x.place(begin), y + static_cast<double>(row) * (thick + gap), std::max(0.6, x.place(end) - x.place(begin)),
          thick, colour_of(lanes[lane].colour), i % 2 == 0 ? "0.95" : "0.65", escape_html(bar.name));
    }
    const double rows = static_cast<double>(std::max<size_t>(1, ends.size()));
    drawn += text_at(start - 10, y + thick - 2, "end", lanes[lane].name) + "\n";
    text +=
        fmt::format("{}: {:.0f} % of the time shown. ", lanes[lane].name, 100 * std::min(1.0, worked / (to - from)));
    y += rows * (thick + gap) - gap + lane_gap;
    drawn += rule(start, y - lane_gap / 2, right, y - lane_gap / 2, 0.12);
  }
  std::string axes;
  for (const double tick : x.ticks(8)) {
    axes += rule(x.place(tick), first - 6, x.place(tick), y, 0.1);
    axes += text_at(x.place(tick), y + 14, "middle", number(tick));
  }
  axes += text_at((start + right) / 2, y + 32, "middle", x_label);
  return start_svg(title, text, y + 42) + axes + drawn + "</svg>";
}

}  // namespace myxtts
