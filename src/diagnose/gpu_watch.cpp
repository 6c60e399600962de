#include "diagnose/gpu_watch.h"

#include "base/error.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace myxtts {
namespace {

struct Series {
  std::vector<double> at_s, values;
};

Series series_of(std::span<const TimedSample> samples, std::optional<double> GpuSample::*metric) {
  Series series;
  for (const TimedSample& sample : samples) {
    if (const auto& value = sample.gpu.*metric) series.at_s.push_back(sample.at_s), series.values.push_back(*value);
  }
  return series;
}

// Resamples to a uniform grid before the period search, because samples jitter on a busy machine.
std::optional<double> period_s_of(const Series& series) {
  const size_t count = series.values.size();
  if (count < 2) return {};
  const double step_s = (series.at_s.back() - series.at_s.front()) / static_cast<double>(count - 1);
  std::vector<double> resampled;
  size_t next = 1;
  for (size_t i = 0; i < count; ++i) {
    const double at_s = series.at_s.front() + static_cast<double>(i) * step_s;
    while (next + 1 < count && series.at_s[next] < at_s) ++next;
    const double gap_s = series.at_s[next] - series.at_s[next - 1];
    const double fraction = gap_s > 0 ? std::clamp((at_s - series.at_s[next - 1]) / gap_s, 0.0, 1.0) : 1;
    resampled.push_back(std::lerp(series.values[next - 1], series.values[next], fraction));
  }
  const auto period = period_of(resampled);
  return period ? std::optional(*period * step_s) : std::nullopt;
}

std::string period_text(const WatchVerdict& verdict) {
  return verdict.period_s ? fmt::format("every {:.3g} s, a cyclic pattern", *verdict.period_s)
                          : "without a fixed period";
}

std::string sentence_of(const WatchVerdict& verdict, std::span<const TimedSample> samples) {
  const SummaryStats& stats = verdict.utilisation;
  if (verdict.use == GpuUse::steady) {
    return fmt::format("steady: the GPU stays between {:.0f} % and {:.0f} %, {:.0f} % on average", stats.p5, stats.p95,
                       stats.mean);
  }
  if (verdict.use == GpuUse::fluctuating) {
    return fmt::format(
        "fluctuating: the GPU swings between {:.0f} % and {:.0f} % {}; its work arrives in bursts and it waits in "
        "between",
        stats.p5, stats.p95, period_text(verdict));
  }
  std::string how =
      fmt::format("under-used: even at its best the GPU is at {:.0f} %, {:.0f} % on average", stats.p95, stats.mean);
  if (stats.p95 < 1) return "under-used: the GPU is idle; nothing runs on it";
  if (verdict.period_s) return fmt::format("{}, and it swings {}", how, period_text(verdict));
  // Back-to-back kernels that leave most SMs idle are not caused by the loader.
  const SummaryStats kernels = summarize(series_of(samples, &GpuSample::utilisation_percent).values);
  if (verdict.by_sm_activity && kernels.p5 >= 70) {
    return fmt::format("{}, though a kernel runs {:.0f} % of the time; larger batches would fill it", how,
                       kernels.mean);
  }
  return how;
}

}  // namespace

WatchVerdict judge(std::span<const TimedSample> samples) {
  const Series activity = series_of(samples, &GpuSample::sm_active_percent);
  WatchVerdict verdict;
  verdict.by_sm_activity = !activity.values.empty() && 2 * activity.values.size() >= samples.size();
  const Series series = verdict.by_sm_activity ? activity : series_of(samples, &GpuSample::utilisation_percent);
  if (series.values.empty())
    fail("watch", "this GPU reports neither utilisation nor SM activity", way_out("see nvidia-smi"));
  verdict.utilisation = summarize(series.values);
  verdict.use = gpu_use_of(verdict.utilisation);
  verdict.period_s = period_s_of(series);
  verdict.sentence = sentence_of(verdict, samples);
  return verdict;
}

}  // namespace myxtts
