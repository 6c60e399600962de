#include "diagnose/oscillation.h"

#include "base/random.h"

#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

using Form = std::function<double(double)>;  // waveform by phase in periods

std::vector<double> series(size_t count, double period, double phase, double noise, uint64_t seed, const Form& form) {
  Random random(seed);
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i) {
    values.push_back(form((static_cast<double>(i) + phase) / period) + noise * random.normal());
  }
  return values;
}

double sine(double t) { return 50 + 40 * std::sin(2 * std::numbers::pi * t); }
double square(double t) { return t - std::floor(t) < 0.5 ? 100 : 0; }

// One stall of 100 ms every `period` batches of 10 ms.
std::vector<double> stalls(size_t count, size_t period, size_t first, double noise, uint64_t seed) {
  std::vector<double> values = series(count, 1, 0, noise, seed, [](double) { return 10; });
  for (size_t i = first; i < count; i += period) values[i] += 90;
  return values;
}

// Number of noise series, of `seeds`, for which a period is reported.
int found_in_noise(int seeds, const std::function<double(Random&)>& draw) {
  int found = 0;
  for (const size_t count : {20U, 50U, 100U, 200U, 600U}) {
    for (int seed = 0; seed < seeds / 5; ++seed) {
      Random random(static_cast<uint64_t>(seed) + 1000 * count);
      std::vector<double> values;
      for (size_t i = 0; i < count; ++i) values.push_back(draw(random));
      found += period_of(values).has_value() ? 1 : 0;
    }
  }
  return found;
}

TEST(SummaryStats, of_known_numbers) {
  const std::vector<double> values = {4, 2, 8, 6};
  const SummaryStats stats = summarize(values);
  EXPECT_DOUBLE_EQ(stats.mean, 5);
  EXPECT_DOUBLE_EQ(stats.std, std::sqrt(5));
  EXPECT_DOUBLE_EQ(stats.cv, std::sqrt(5) / 5);
  EXPECT_DOUBLE_EQ(stats.p50, 5);
  EXPECT_DOUBLE_EQ(stats.p5, 2.3);
  EXPECT_DOUBLE_EQ(stats.p95, 7.7);
  EXPECT_DOUBLE_EQ(stats.max, 8);
}

TEST(SummaryStats, of_one_and_of_none) {
  const std::vector<double> one = {3};
  EXPECT_DOUBLE_EQ(summarize(one).p95, 3);
  EXPECT_DOUBLE_EQ(summarize(one).std, 0);
  EXPECT_DOUBLE_EQ(summarize({}).mean, 0);
  EXPECT_DOUBLE_EQ(summarize(std::vector<double>{0, 0}).cv, 0);
}

TEST(Period, of_waves_with_noise) {
  for (const double period : {4.0, 6.5, 8.5, 13.3, 20.0, 40.0}) {
    for (const size_t count : {200U, 600U, 3000U}) {
      for (uint64_t seed = 0; seed < 10; ++seed) {
        const double phase = 0.1 * static_cast<double>(seed) * period;
        for (const Form& form : {Form(sine), Form(square)}) {
          const auto found = period_of(series(count, period, phase, 10, seed, form));
          ASSERT_TRUE(found) << period << " in " << count << ", seed " << seed;
          EXPECT_NEAR(*found, period, 0.1 * period) << period << " in " << count << ", seed " << seed;
        }
      }
    }
  }
}

TEST(Period, of_three_periods_without_noise_to_a_fraction_of_a_sample) {
  EXPECT_NEAR(period_of(series(50, 16.4, 0, 0, 0, sine)).value(), 16.4, 0.3);
  EXPECT_NEAR(period_of(series(600, 40.4, 0, 0, 0, sine)).value(), 40.4, 0.2);
}

TEST(Period, of_a_wave_upon_a_slope) {
  std::vector<double> values = series(200, 20, 0, 2, 1, square);
  for (size_t i = 0; i < values.size(); ++i) values[i] += 3 * static_cast<double>(i);
  EXPECT_NEAR(period_of(values).value(), 20, 1);
}

TEST(Period, of_rare_stalls_wherever_they_begin) {
  for (const size_t count : {50U, 60U, 100U, 150U, 200U}) {
    for (size_t first = 0; first < 20; ++first) {
      for (const double noise : {0.0, 1.0, 3.0}) {
        const auto found = period_of(stalls(count, 20, first, noise, first));
        ASSERT_TRUE(found) << count << " batches, first stall at " << first << ", noise " << noise;
        EXPECT_NEAR(*found, 20, 2) << count << " batches, first stall at " << first << ", noise " << noise;
      }
    }
  }
}

TEST(Period, of_stalls_between_whole_samples_is_not_taken_for_twice_as_long) {
  for (const double period : {5.5, 12.5, 20.5}) {
    std::vector<double> values = series(200, 1, 0, 1, 7, [](double) { return 10; });
    for (double at = 3; at < 199; at += period) values[static_cast<size_t>(std::lround(at))] += 90;
    EXPECT_NEAR(period_of(values).value(), period, 0.1 * period);
  }
}

TEST(Period, is_not_found_in_noise) {
  EXPECT_LE(found_in_noise(2000, [](Random& random) { return random.normal(); }), 20);
  EXPECT_LE(found_in_noise(2000, [](Random& random) { return std::abs(random.normal()); }), 20);
  EXPECT_LE(found_in_noise(2000, [](Random& random) { return 10 + std::exp(0.3 * random.normal()); }), 20);
}

TEST(Period, is_not_found_in_a_walk_that_forgets_slowly) {
  double last = 0;
  EXPECT_LE(found_in_noise(2000, [&](Random& random) { return last = 0.9 * last + random.normal(); }), 20);
}

TEST(Period, is_seldom_found_in_stalls_at_random) {
  // Two stalls in a short series count as a period, so about 2.3 % are false positives.
  EXPECT_LE(found_in_noise(2000, [](Random& random) { return random.normal() + (random.normal() > 1.3 ? 90 : 0); }),
            60);
}

TEST(Period, of_constants_lines_and_short_series_is_none) {
  EXPECT_FALSE(period_of({}));
  EXPECT_FALSE(period_of(std::vector<double>(100, 0.1)));
  EXPECT_FALSE(period_of(std::vector<double>{1, 2, 1, 2, 1}));
  std::vector<double> line;
  for (int i = 0; i < 100; ++i) line.push_back(0.1 * i);
  EXPECT_FALSE(period_of(line));
  EXPECT_FALSE(period_of(series(50, 40, 0, 0, 0, sine))) << "less than two periods";
}

TEST(GpuUse, follows_the_percentiles) {
  const auto use = [](double p5, double p95) {
    SummaryStats stats;
    stats.p5 = p5, stats.p95 = p95;
    return gpu_use_of(stats);
  };
  EXPECT_EQ(use(85, 99), GpuUse::steady);
  EXPECT_EQ(use(10, 71), GpuUse::steady);
  EXPECT_EQ(use(9, 71), GpuUse::fluctuating);
  EXPECT_EQ(use(2, 40), GpuUse::under_used);
  EXPECT_EQ(use(60, 69), GpuUse::under_used);
  EXPECT_EQ(name_of(GpuUse::under_used), "under-used");
}

}  // namespace
}  // namespace myxtts
