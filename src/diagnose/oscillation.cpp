#include "diagnose/oscillation.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace myxtts {
namespace {

double percentile(std::span<const double> sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

std::vector<double> detrend(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  const double middle = (count - 1) / 2;
  double mean = 0, slope = 0;
  for (const double value : values) mean += value / count;
  for (size_t i = 0; i < values.size(); ++i) slope += (static_cast<double>(i) - middle) * (values[i] - mean);
  slope /= count * (count * count - 1) / 12;
  std::vector<double> residual(values.begin(), values.end());
  for (size_t i = 0; i < residual.size(); ++i) residual[i] -= mean + slope * (static_cast<double>(i) - middle);
  return residual;
}

// Unbiased, for lags up to half the series plus one.
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

// Parabolic interpolation of a peak.
double interpolate_peak(std::span<const double> r, size_t peak) {
  const double left = r[peak - 1], right = r[peak + 1], curvature = left - 2 * r[peak] + right;
  return static_cast<double>(peak) + (curvature < 0 ? 0.5 * (left - right) / curvature : 0);
}

// A fractional period splits its peak between two neighbouring lags.
double peak_height(std::span<const double> r, size_t peak) {
  return r[peak] + std::max({0.0, r[peak - 1], r[peak + 1]});
}

}  // namespace

SummaryStats summarize(std::span<const double> values) {
  if (values.empty()) return {};
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const auto count = static_cast<double>(sorted.size());
  SummaryStats stats;
  for (const double value : sorted) stats.mean += value / count;
  double variance = 0;
  for (const double value : sorted) variance += (value - stats.mean) * (value - stats.mean) / count;
  stats.std = std::sqrt(variance);
  stats.cv = stats.mean == 0 ? 0 : stats.std / stats.mean;
  stats.p5 = percentile(sorted, 0.05), stats.p50 = percentile(sorted, 0.5), stats.p95 = percentile(sorted, 0.95);
  stats.max = sorted.back();
  return stats;
}

std::optional<double> period_of(std::span<const double> values) {
  constexpr size_t min_samples = 8, max_samples = 8192;
  if (values.size() > max_samples) values = values.last(max_samples);
  const size_t count = values.size();
  if (count < min_samples) return {};
  const std::vector<double> residual = detrend(values);
  // A constant or a straight line leaves only rounding error.
  if (dot(residual, residual) <= 1e-18 * dot(values, values)) return {};
  const std::vector<double> r = autocorrelation(residual);

  // Any smooth series correlates at short lags, so search for peaks after the first non-positive lag.
  size_t first = 1;
  while (first < r.size() && r[first] > 0) ++first;
  std::vector<size_t> peaks;
  for (size_t lag = first + 1; lag + 1 < r.size(); ++lag) {
    if (r[lag] > 0 && r[lag] >= r[lag - 1] && r[lag] > r[lag + 1]) peaks.push_back(lag);
  }
  if (peaks.empty()) return {};

  // Standard error of the autocorrelation of noise by Bartlett's formula. Noise does not exceed 4.5 of them within
  // hundreds of lags.
  double bartlett = 1;
  for (size_t lag = 1; lag < first; ++lag) bartlett += 2 * r[lag] * r[lag];
  const auto std_error = [&](size_t lag) { return std::sqrt(bartlett / static_cast<double>(count - lag)); };
  const size_t clearesidual = *std::max_element(
      peaks.begin(), peaks.end(), [&](size_t a, size_t b) { return r[a] / std_error(a) < r[b] / std_error(b); });
  if (r[clearesidual] < std::max(0.3, std::min(0.75, 4.5 * std_error(clearesidual)))) return {};

  // Multiples of the period are peaks too, so take the first peak that is nearly as high as the clearest.
  const size_t period = *std::find_if(peaks.begin(), peaks.end(), [&](size_t lag) {
    return peak_height(r, lag) >= 0.7 * peak_height(r, clearesidual);
  });
  return interpolate_peak(r, period);
}

GpuUse gpu_use_of(const SummaryStats& utilisation) {
  if (utilisation.p95 < 70) return GpuUse::under_used;
  return utilisation.p5 < 10 ? GpuUse::fluctuating : GpuUse::steady;
}

std::string_view name_of(GpuUse use) {
  return use == GpuUse::steady ? "steady" : use == GpuUse::under_used ? "under-used" : "fluctuating";
}

}  // namespace myxtts
