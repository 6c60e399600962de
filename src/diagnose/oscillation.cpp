#include "diagnose/oscillation.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace myxtts {
namespace {

double percentile(std::span<const double> sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

std::vector<double> without_trend(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  const double middle = (count - 1) / 2;
  double mean = 0, slope = 0;
  for (const double value : values) mean += value / count;
  for (size_t i = 0; i < values.size(); ++i) slope += (static_cast<double>(i) - middle) * (values[i] - mean);
  slope /= count * (count * count - 1) / 12;
  std::vector<double> rest(values.begin(), values.end());
  for (size_t i = 0; i < rest.size(); ++i) rest[i] -= mean + slope * (static_cast<double>(i) - middle);
  return rest;
}

// For lags up to half the series and one more; each lag's sum is weighed by the number of its pairs.
std::vector<double> autocorrelation(std::span<const double> values) {
  const size_t count = values.size();
  const double energy = dot(values, values) / static_cast<double>(count);
  std::vector<double> correlation(count / 2 + 2);
  for (size_t lag = 0; lag < correlation.size(); ++lag) {
    const size_t pairs = count - lag;
    correlation[lag] = dot(values.first(pairs), values.subspan(lag)) / static_cast<double>(pairs) / energy;
  }
  return correlation;
}

// The top of the parabola through a peak and its neighbours.
double refined(std::span<const double> r, size_t peak) {
  const double left = r[peak - 1], right = r[peak + 1], bend = left - 2 * r[peak] + right;
  return static_cast<double>(peak) + (bend < 0 ? 0.5 * (left - right) / bend : 0);
}

// A period between two whole numbers of samples has its peak shared between both.
double height(std::span<const double> r, size_t peak) { return r[peak] + std::max({0.0, r[peak - 1], r[peak + 1]}); }

}  // namespace

Spread spread_of(std::span<const double> values) {
  if (values.empty()) return {};
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const auto count = static_cast<double>(sorted.size());
  Spread spread;
  for (const double value : sorted) spread.mean += value / count;
  double variance = 0;
  for (const double value : sorted) variance += (value - spread.mean) * (value - spread.mean) / count;
  spread.deviation = std::sqrt(variance);
  spread.variation = spread.mean == 0 ? 0 : spread.deviation / spread.mean;
  spread.p5 = percentile(sorted, 0.05), spread.p50 = percentile(sorted, 0.5), spread.p95 = percentile(sorted, 0.95);
  spread.most = sorted.back();
  return spread;
}

std::optional<double> period_of(std::span<const double> values) {
  constexpr size_t fewest = 8, most = 8192;
  if (values.size() > most) values = values.last(most);
  const size_t count = values.size();
  if (count < fewest) return {};
  const std::vector<double> rest = without_trend(values);
  // What rounding leaves of a constant or of a straight line is not a signal.
  if (dot(rest, rest) <= 1e-18 * dot(values, values)) return {};
  const std::vector<double> r = autocorrelation(rest);

  // Neighbours resemble each other in any smooth series; a period shows only after the first lag that does not.
  size_t first = 1;
  while (first < r.size() && r[first] > 0) ++first;
  std::vector<size_t> peaks;
  for (size_t lag = first + 1; lag + 1 < r.size(); ++lag) {
    if (r[lag] > 0 && r[lag] >= r[lag - 1] && r[lag] > r[lag + 1]) peaks.push_back(lag);
  }
  if (peaks.empty()) return {};

  // How far noise alone reaches: its correlation has a deviation of 1 / sqrt(pairs), more where neighbours are alike
  // (Bartlett's formula). 4.5 deviations are not reached by chance over hundreds of lags.
  double alike = 1;
  for (size_t lag = 1; lag < first; ++lag) alike += 2 * r[lag] * r[lag];
  const auto deviation = [&](size_t lag) { return std::sqrt(alike / static_cast<double>(count - lag)); };
  const size_t clearest = *std::max_element(
      peaks.begin(), peaks.end(), [&](size_t a, size_t b) { return r[a] / deviation(a) < r[b] / deviation(b); });
  if (r[clearest] < std::max(0.3, std::min(0.75, 4.5 * deviation(clearest)))) return {};

  // Twice and three times the period are peaks as well: the first that is nearly as high is the period.
  const size_t period = *std::find_if(peaks.begin(), peaks.end(),
                                      [&](size_t lag) { return height(r, lag) >= 0.7 * height(r, clearest); });
  return refined(r, period);
}

GpuUse gpu_use_of(const Spread& utilisation) {
  if (utilisation.p95 < 70) return GpuUse::under_used;
  return utilisation.p5 < 10 ? GpuUse::fluctuating : GpuUse::steady;
}

std::string_view name_of(GpuUse use) {
  return use == GpuUse::steady ? "steady" : use == GpuUse::under_used ? "under-used" : "fluctuating";
}

}  // namespace myxtts
