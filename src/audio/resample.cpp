#include "audio/resample.h"

#include "audio/wav.h"
#include "base/error.h"
#include "base/work_clock.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace myxtts {
namespace {

constexpr double zero_crossings = 6.0;
constexpr double rolloff = 0.99;

template <typename Tap>
std::vector<float> apply(std::span<const float> input, const ResampleFilter& filter, Tap tap) {
  const auto length = static_cast<int64_t>(input.size());
  std::vector<float> output(filter.output_length(input.size()));
  for (int64_t n = 0; n < static_cast<int64_t>(output.size()); ++n) {
    const int64_t phase = n % filter.phases();
    const int64_t start = n / filter.phases() * filter.step() + filter.first(phase);
    const int64_t begin = std::max<int64_t>(0, -start);
    const int64_t end = std::min(filter.taps(), length - start);
    float sum = 0.0F;
    for (int64_t k = begin; k < end; ++k) sum += tap(phase, k) * input[static_cast<size_t>(start + k)];
    output[static_cast<size_t>(n)] = sum;
  }
  return output;
}

}  // namespace

ResampleFilter::ResampleFilter(int from_hz, int to_hz) {
  const int64_t common = std::gcd(from_hz, to_hz);
  from_ = from_hz / common;
  to_ = to_hz / common;
  cutoff_ = rolloff * static_cast<double>(std::min(from_, to_)) / static_cast<double>(from_);
  taps_ = from_ == to_ ? 1 : 2 * static_cast<int64_t>(std::ceil(zero_crossings / cutoff_)) + 1;
}

int64_t ResampleFilter::first(int64_t phase) const {
  if (identity()) return 0;
  const int64_t centre = phase * from_ / to_;
  return centre - taps_ / 2;
}

float ResampleFilter::tap(int64_t phase, int64_t k) const {
  if (identity()) return 1.0F;
  // Distance, in zero crossings, between the input sample and the output sample's place among the input.
  const double place = static_cast<double>(phase * from_) / static_cast<double>(to_);
  const double t = (static_cast<double>(first(phase) + k) - place) * cutoff_;
  if (std::abs(t) >= zero_crossings) return 0.0F;
  const double window = std::pow(std::cos(t * std::numbers::pi / zero_crossings / 2.0), 2);
  const double angle = t * std::numbers::pi;
  return static_cast<float>((angle == 0.0 ? 1.0 : std::sin(angle) / angle) * window * cutoff_);
}

std::vector<float> ResampleFilter::table() const {
  std::vector<float> taps;
  taps.reserve(static_cast<size_t>(phases() * taps_));
  for (int64_t phase = 0; phase < phases(); ++phase) {
    for (int64_t k = 0; k < taps_; ++k) taps.push_back(tap(phase, k));
  }
  return taps;
}

std::vector<float> resample(std::span<const float> input, const ResampleFilter& filter, std::span<const float> table) {
  return apply(input, filter,
               [&](int64_t phase, int64_t k) { return table[static_cast<size_t>(phase * filter.taps() + k)]; });
}

std::vector<float> resample(std::span<const float> input, int from_hz, int to_hz) {
  if (from_hz == to_hz) return {input.begin(), input.end()};
  const WorkTimer timer(&WorkClock::features_ns);
  const ResampleFilter filter(from_hz, to_hz);
  if (filter.output_length(input.size()) > max_clip_samples) {
    fail_as(ErrorCode::unreadable, "audio", "{} samples at {} Hz are too many for {} Hz: at most {} are made",
            input.size(), from_hz, to_hz, max_clip_samples);
  }
  if (filter.output_length(input.size()) >= static_cast<uint64_t>(filter.phases()))
    return resample(input, filter, filter.table());
  return apply(input, filter, [&](int64_t phase, int64_t k) { return filter.tap(phase, k); });
}

}  // namespace myxtts
