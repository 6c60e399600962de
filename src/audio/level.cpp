#include "audio/level.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace myxtts {
namespace {

constexpr double silent_rms = 1e-8;

double energy(std::span<const float> samples) {
  double sum = 0;
  for (const float x : samples) sum += static_cast<double>(x) * x;
  return sum;
}

}  // namespace

float gain_to_rms(std::span<const float> samples, double target) {
  if (samples.empty()) return 1.0F;
  const double rms = std::sqrt(energy(samples) / static_cast<double>(samples.size()));
  return rms < silent_rms ? 1.0F : static_cast<float>(target / rms);
}

void normalise_rms(std::span<float> samples, double target) {
  const float gain = gain_to_rms(samples, target);
  for (float& x : samples) x = std::clamp(x * gain, -1.0F, 1.0F);
}

SampleRange sounding_part(std::span<const float> samples, const TrimSettings& settings) {
  std::vector<double> frame_energy;
  const auto hop = static_cast<size_t>(settings.hop_samples);
  const auto frame = static_cast<size_t>(settings.frame_samples);
  for (size_t at = 0; at < samples.size(); at += hop) {
    frame_energy.push_back(energy(samples.subspan(at, std::min(frame, samples.size() - at))));
  }
  if (frame_energy.empty()) return {};
  const double loudest = *std::max_element(frame_energy.begin(), frame_energy.end());
  if (loudest <= silent_rms * silent_rms * static_cast<double>(frame)) return {};
  const double threshold = loudest * std::pow(10.0, -settings.below_peak_db / 10.0);
  const auto loud = [&](double e) { return e > threshold; };
  const auto first = std::find_if(frame_energy.begin(), frame_energy.end(), loud) - frame_energy.begin();
  const auto last = frame_energy.rend() - std::find_if(frame_energy.rbegin(), frame_energy.rend(), loud) - 1;
  const auto margin = static_cast<int64_t>(settings.margin_samples);
  const auto length = static_cast<int64_t>(samples.size());
  return {
      static_cast<uint64_t>(std::max<int64_t>(0, first * settings.hop_samples - margin)),
      static_cast<uint64_t>(std::min<int64_t>(length, last * settings.hop_samples + settings.frame_samples + margin))};
}

}  // namespace myxtts
