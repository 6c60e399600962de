#include "artifacts/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(Chart, thinning_keeps_ends_order_and_extremes) {
  std::vector<Point> points;
  for (int i = 0; i < 100'000; ++i) points.push_back({static_cast<double>(i), std::sin(i * 0.001)});
  points[54'321].y = 9;
  points[77'777].y = -9;
  const std::vector<Point> thin = thin_points(points);
  EXPECT_LE(thin.size(), 500U);
  EXPECT_GE(thin.size(), 400U);
  EXPECT_EQ(thin.front().x, 0);
  EXPECT_EQ(thin.back().x, 99'999);
  EXPECT_TRUE(std::ranges::is_sorted(thin, {}, &Point::x));
  EXPECT_EQ(std::ranges::max(thin, {}, &Point::y).x, 54'321);
  EXPECT_EQ(std::ranges::min(thin, {}, &Point::y).x, 77'777);
  for (size_t size = 0; size < 30; ++size) {
    for (size_t most = 0; most < 30; ++most) {
      const std::vector<Point> some = thin_points(std::span(points).first(size), most);
      ASSERT_LE(some.size(), std::max<size_t>(most, 4));
      ASSERT_TRUE(size == 0 || some.back().x == static_cast<double>(size - 1));
    }
  }
}

TEST(Chart, ticks_are_round_and_names_are_escaped) {
  const std::string svg = make_line_chart(
      {"a <b>", "step", "ms", {{"one & two", {{0, 0.13}, {1000, 0.94}}}, {"three", {{500, 0.5}}}}, false});
  for (const char* tick : {">0.2<", ">0.4<", ">0.8<", ">200<", ">1000<"}) EXPECT_TRUE(has(svg, tick)) << tick;
  EXPECT_TRUE(has(svg, "<title>a &lt;b&gt;</title>"));
  EXPECT_TRUE(has(svg, "one &amp; two: 2 points, from 0.13 to 0.94."));
  EXPECT_TRUE(has(svg, "role=\"img\""));
  EXPECT_FALSE(has(svg, "http"));
}

// Every centred label, with digits as wide as in the widest usual font.
void expect_labels_inside(const std::string& svg) {
  constexpr double width = 720, digit = 8;
  const std::regex label("<text x=\"([0-9.]+)\"[^>]*\"middle\">([^<]*)<");
  int seen = 0;
  for (std::sregex_iterator found(svg.begin(), svg.end(), label), end; found != end; ++found, ++seen) {
    const double half = digit * static_cast<double>((*found)[2].length()) / 2, x = std::stod((*found)[1]);
    EXPECT_TRUE(x - half >= 0 && x + half <= width) << (*found)[0];
  }
  EXPECT_GE(seen, 5) << svg;
}

TEST(Chart, the_last_label_of_an_axis_is_not_cut_off) {
  expect_labels_inside(make_line_chart({"loss", "step", "", {{"loss", {{0, 3}, {1'000'000, 1}}}}, false}));
  expect_labels_inside(make_timeline("stages", "ms", {}, 1'234'000, 1'235'000));
  std::vector<HistogramBar> bars;
  for (int i = 0; i < 40; ++i) bars.push_back({i * 25'000.0, 1'000'000 + i});
  expect_labels_inside(make_histogram("lengths", "frames", bars));
}

TEST(Chart, a_logarithmic_scale_has_powers_of_ten) {
  const std::string svg =
      make_line_chart({"norm", "step", "", {{"norm", {{0, 0.002}, {1, 5}, {2, 3000}, {3, 0}, {4, -1}}}}, true});
  for (const char* tick : {">0.01<", ">1<", ">100<", ">1000<"}) EXPECT_TRUE(has(svg, tick)) << tick;
  EXPECT_TRUE(has(svg, "2 values cannot be drawn"));
}

TEST(Chart, odd_values_do_not_spoil_it) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::vector<Point>> odd = {{},
                                               {{0, 0}},
                                               {{5, 3}, {6, 3}},
                                               {{0, nan}, {1, inf}, {2, -inf}},
                                               {{0, 1e308}, {1, -1e308}, {2, 1}},
                                               {{0, 1e-310}, {1, 1e-305}},
                                               {{0, 1e15}, {1, 1e15 + 1}}};
  for (const auto& points : odd) {
    for (const bool log_y : {false, true}) {
      const std::string svg = make_line_chart({"odd", "x", "y", {{"series", points}}, log_y});
      EXPECT_FALSE(has(svg, "nan") || has(svg, "inf,") || has(svg, "\"inf")) << svg;
      EXPECT_LT(svg.size(), 20'000U);
    }
  }
}

TEST(Chart, a_histogram_shows_each_bar) {
  const std::vector<HistogramBar> bars = {{0, 3}, {10, 0}, {20, 7}};
  const std::string svg = make_histogram("lengths", "frames", bars);
  for (const char* part : {"<title>0+: 3</title>", "<title>10+: 0</title>", "<title>20+: 7</title>", "10 in 3 bars"}) {
    EXPECT_TRUE(has(svg, part)) << part;
  }
  EXPECT_TRUE(has(make_histogram("none", "", {}), "</svg>"));
}

TEST(Chart, a_timeline_stacks_what_overlaps_and_cuts_what_lies_outside) {
  const std::vector<TimelineLane> lanes = {
      {"read", 0, {{-5, 10, "first <b>"}, {5, 20, "second"}, {200, 300, "outside"}}}, {"wait", 1, {}}};
  const std::string svg = make_timeline("stages", "ms", lanes, 0, 100);
  EXPECT_TRUE(has(svg, "<title>first &lt;b&gt;</title>") && has(svg, "<title>second</title>"));
  EXPECT_FALSE(has(svg, "outside"));
  EXPECT_TRUE(has(svg, "read: 25 % of the time shown") && has(svg, "wait: 0 % of the time shown")) << svg;
  EXPECT_TRUE(has(svg, "y=\"44.0\"") && has(svg, "y=\"59.0\"")) << "one below the other";
  EXPECT_TRUE(has(make_timeline("none", "", {}, 0, 0), "</svg>"));
}

TEST(Chart, shares_are_bars_with_their_names_and_notes) {
  const std::vector<ShareBar> bars = {{"short", 0.5, "50 % & more"}, {"odd", 7, "too much"}};
  const std::string svg = make_share_bars("padding", bars);
  for (const char* part : {"short: 50 %", ">short<", "50 % &amp; more", "width=\"175.0\"", "width=\"350.0\""}) {
    EXPECT_TRUE(has(svg, part)) << part << svg;
  }
}

}  // namespace
}  // namespace myxtts
