#include "diagnose/gpu_watch.h"

#include "base/error.h"
#include "base/random.h"

#include <functional>
#include <vector>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

// Every 50 ms for 20 s, with jitter of up to 40 ms.
std::vector<TimedSample> watched(const std::function<void(double at_s, GpuSample&)>& fill) {
  Random random(5);
  std::vector<TimedSample> samples;
  for (int i = 0; i < 400; ++i) {
    TimedSample& sample = samples.emplace_back();
    sample.at_s = 0.05 * i + (i % 7 == 0 ? random.uniform(0, 0.04) : 0);
    fill(sample.at_s, sample.gpu);
  }
  return samples;
}

bool works(double at_s, double period_s) { return std::fmod(at_s, period_s) < period_s / 2; }

bool says(const WatchVerdict& verdict, const char* text) { return verdict.sentence.find(text) != std::string::npos; }

TEST(Watch, half_a_period_at_work_is_fluctuating_with_that_period) {
  const WatchVerdict verdict = judge(watched([](double at_s, GpuSample& gpu) {
    gpu.sm_active_percent = works(at_s, 2) ? 95 : 0;
    gpu.utilisation_percent = 50;
  }));
  EXPECT_TRUE(verdict.by_sm_activity);
  EXPECT_EQ(verdict.use, GpuUse::fluctuating);
  EXPECT_NEAR(verdict.period_s.value(), 2, 0.05);
  EXPECT_TRUE(says(verdict, "fluctuating: the GPU swings between 0 % and 95 % every 2 s")) << verdict.sentence;
}

TEST(Watch, a_card_that_counts_nothing_is_judged_by_its_utilisation) {
  const WatchVerdict verdict =
      judge(watched([](double at_s, GpuSample& gpu) { gpu.utilisation_percent = works(at_s, 3.1) ? 99 : 3; }));
  EXPECT_FALSE(verdict.by_sm_activity);
  EXPECT_EQ(verdict.use, GpuUse::fluctuating);
  EXPECT_NEAR(verdict.period_s.value(), 3.1, 0.1);
}

TEST(Watch, between_2_and_40_per_cent_is_under_used_and_swings) {
  const WatchVerdict verdict =
      judge(watched([](double at_s, GpuSample& gpu) { gpu.utilisation_percent = works(at_s, 1.5) ? 40 : 2; }));
  EXPECT_EQ(verdict.use, GpuUse::under_used);
  EXPECT_TRUE(says(verdict, "at 40 %, 21 % on average, and it swings every 1.5 s")) << verdict.sentence;
}

TEST(Watch, small_kernels_all_the_time_are_told_from_waiting) {
  const WatchVerdict verdict = judge(watched([](double, GpuSample& gpu) {
    gpu.utilisation_percent = 99;
    gpu.sm_active_percent = 30;
  }));
  EXPECT_EQ(verdict.use, GpuUse::under_used);
  EXPECT_TRUE(says(verdict, "a kernel runs 99 % of the time")) << verdict.sentence;
}

TEST(Watch, an_idle_gpu_is_called_idle) {
  EXPECT_TRUE(says(judge(watched([](double, GpuSample& gpu) { gpu.utilisation_percent = 0; })), "idle"));
}

TEST(Watch, steady_work_is_steady) {
  Random random(1);
  const WatchVerdict verdict =
      judge(watched([&](double, GpuSample& gpu) { gpu.utilisation_percent = random.uniform(90, 99); }));
  EXPECT_EQ(verdict.use, GpuUse::steady);
  EXPECT_FALSE(verdict.period_s);
  EXPECT_TRUE(says(verdict, "steady: the GPU stays between 9")) << verdict.sentence;
}

TEST(Watch, one_sample_is_enough_for_a_verdict_and_none_is_an_error) {
  std::vector<TimedSample> samples(1);
  EXPECT_THROW(judge(samples), Error);
  samples[0].gpu.utilisation_percent = 90;
  EXPECT_EQ(judge(samples).use, GpuUse::steady);
}

}  // namespace
}  // namespace myxtts
