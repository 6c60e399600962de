#include "model/dropout.h"

#include <cmath>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

Dropout dropout_of(const int64_t& key, uint32_t site, double rate) {
  return {&key, site, dropout_threshold(rate), static_cast<float>(1 / (1 - rate))};
}

TEST(Dropout, drops_the_share_that_it_is_given_and_keeps_the_mean) {
  const int64_t key = 0x123456789ABCDEF;
  for (const double rate : {0.05, 0.1, 0.5}) {
    double sum = 0, dropped = 0, count = 0;
    for (int64_t position = 0; position < 20000; ++position) {
      float multipliers[dropout_group];
      draw_dropout(dropout_of(key, 3, rate), 1, position, 2, multipliers);
      for (const float multiplier : multipliers) sum += multiplier, dropped += multiplier == 0 ? 1 : 0, ++count;
    }
    const double spread = 5 * std::sqrt(rate * (1 - rate) / count);  // five standard deviations
    EXPECT_NEAR(dropped / count, rate, spread);
    EXPECT_NEAR(sum / count, 1, spread / (1 - rate));
  }
}

// Half of the draws agree by chance; a coordinate that did not count would make all agree.
TEST(Dropout, every_coordinate_counts) {
  const int64_t key = 7, other_key = 7LL << 32;
  const Dropout here = dropout_of(key, 1, 0.5);
  int same[5] = {};
  constexpr int draws = 4000;
  for (int i = 0; i < draws; ++i) {
    const auto bit = [](const Dropout& dropout, int64_t row, int64_t position, int64_t group) {
      float multipliers[dropout_group];
      draw_dropout(dropout, row, position, group, multipliers);
      return multipliers[0] > 0;
    };
    const bool drawn = bit(here, 2, i, 3);
    same[0] += drawn == bit(here, 3, i, 3) ? 1 : 0;
    same[1] += drawn == bit(here, 2, i + 1, 3) ? 1 : 0;
    same[2] += drawn == bit(here, 2, i, 4) ? 1 : 0;
    same[3] += drawn == bit(dropout_of(key, 2, 0.5), 2, i, 3) ? 1 : 0;
    same[4] += drawn == bit(dropout_of(other_key, 1, 0.5), 2, i, 3) ? 1 : 0;
  }
  for (const int agreed : same) EXPECT_NEAR(agreed, draws / 2, 5 * std::sqrt(draws) / 2);
}

}  // namespace
}  // namespace myxtts
