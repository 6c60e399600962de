#include "artifacts/png.h"

#include "base/error.h"

#include <vector>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

// That the pictures decode is tested with Pillow, in tests/program/test_artifacts.py.
TEST(Png, a_scaled_picture_stays_small) {
  std::vector<float> values(80 * 400);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7919 % 1000);
  const size_t plain = make_png_heatmap(values, 80, 400).size();
  const size_t scaled = make_png_heatmap(values, 80, 400, {.scale = 4}).size();
  EXPECT_LT(scaled, 4 * plain);  // sixteen times the pixels
}

TEST(Png, sizes_that_do_not_fit_are_refused) {
  const std::vector<float> values(6);
  EXPECT_THROW(make_png_heatmap(values, 2, 4), Error);
  EXPECT_THROW(make_png_heatmap(values, 0, 4), Error);
  EXPECT_THROW(make_png_heatmap({}, 0, 0), Error);
  EXPECT_THROW(make_png_heatmap(values, 2, 3, {.scale = 0}), Error);
  EXPECT_THROW(make_png_heatmap(values, 2, 3, {.scale = 1 << 30}), Error);
}

}  // namespace
}  // namespace myxtts
