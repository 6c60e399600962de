#include "demo/voice.h"

#include "base/random.h"
#include "demo/graphemes.h"
#include "text/utf8.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace myxtts {
namespace {

constexpr double control_ms = 1.5;     // interval of parameter updates
constexpr double smoothing_ms = 11.0;  // coarticulation between neighbouring letters
constexpr double target_rms = 0.08;
constexpr double peak_limit = 0.95;

// Parameters of the vocal tract at one time.
struct Posture {
  double formant_hz[3];
  double voicing;
  double noise;
};

// A two-pole resonator with unit gain at 0 Hz.
class Resonator {
 public:
  void tune(double hz, double bandwidth_hz, double sample_rate) {
    const double radius = std::exp(-std::numbers::pi * bandwidth_hz / sample_rate);
    c_ = -radius * radius;
    b_ = 2.0 * radius * std::cos(2.0 * std::numbers::pi * hz / sample_rate);
    a_ = 1.0 - b_ - c_;
  }
  double operator()(double input) {
    const double output = a_ * input + b_ * y1_ + c_ * y2_;
    y2_ = y1_;
    return y1_ = output;
  }

 private:
  double a_ = 1, b_ = 0, c_ = 0, y1_ = 0, y2_ = 0;
};

// Glottal flow over one period: opens for 40 %, closes within 16 %, then stays closed.
double glottal_flow(double phase) {
  if (phase < 0.40) return 0.5 * (1.0 - std::cos(std::numbers::pi * phase / 0.40));
  if (phase < 0.56) return std::cos(0.5 * std::numbers::pi * (phase - 0.40) / 0.16);
  return 0.0;
}

// Target parameters per control step.
std::vector<Posture> targets(std::string_view text, const Speaker& speaker, Random& random) {
  std::vector<Posture> steps;
  for (const char32_t letter : decode_utf8(text)) {
    const Grapheme* grapheme = find_grapheme(letter);
    if (grapheme == nullptr) continue;
    const double duration_ms = grapheme->duration_ms * random.uniform(0.9, 1.1);
    const auto count = static_cast<int>(std::lround(duration_ms / control_ms));
    for (int i = 0; i < count; ++i) {
      Posture posture{};
      for (int f = 0; f < 3; ++f) posture.formant_hz[f] = grapheme->formant_hz[f] * speaker.tract_scale;
      const bool closed = i < grapheme->closure * count;
      posture.voicing = closed ? 0.0 : grapheme->voicing;
      posture.noise = closed ? 0.0 : grapheme->noise;
      steps.push_back(posture);
    }
  }
  return steps;
}

void approach(Posture& now, const Posture& goal, double share) {
  for (int f = 0; f < 3; ++f) now.formant_hz[f] += share * (goal.formant_hz[f] - now.formant_hz[f]);
  now.voicing += share * (goal.voicing - now.voicing);
  now.noise += share * (goal.noise - now.noise);
}

void set_level(std::vector<float>& samples) {
  double energy = 0, peak = 0;
  for (const float x : samples) {
    energy += static_cast<double>(x) * x;
    peak = std::max(peak, std::abs(static_cast<double>(x)));
  }
  if (peak == 0) return;
  const double rms = std::sqrt(energy / static_cast<double>(samples.size()));
  const double gain = std::min(target_rms / rms, peak_limit / peak);
  for (float& x : samples) x = static_cast<float>(x * gain);
}

}  // namespace

Speaker demo_speaker(int number) {
  if (number == 0) return {};
  Random random(static_cast<uint64_t>(number) * 7919);
  return {random.uniform(85, 240), random.uniform(0.88, 1.2)};
}

std::vector<float> synthesize(std::string_view text, const Speaker& speaker, int sample_rate, uint64_t seed) {
  Random random(seed);
  const std::vector<Posture> steps = targets(text, speaker, random);
  if (steps.empty()) return {};
  const double step_samples = control_ms * 1e-3 * sample_rate;
  const double share = 1.0 - std::exp(-control_ms / smoothing_ms);
  std::vector<float> samples;
  samples.reserve(static_cast<size_t>(step_samples * static_cast<double>(steps.size())) + 1);
  Resonator tract[3];
  Posture now = steps.front();
  double phase = 0, last_flow = 0;
  for (size_t step = 0; step < steps.size(); ++step) {
    approach(now, steps[step], share);
    for (int f = 0; f < 3; ++f) {
      tract[f].tune(std::min(now.formant_hz[f], 0.46 * sample_rate), 60.0 + 40.0 * f + 0.02 * now.formant_hz[f],
                    sample_rate);
    }
    const double progress = static_cast<double>(step) / static_cast<double>(steps.size());
    const double pitch_hz =
        speaker.pitch_hz * (1.12 - 0.25 * progress + 0.02 * std::sin(0.05 * static_cast<double>(step)));
    const auto end = static_cast<size_t>(step_samples * static_cast<double>(step + 1));
    while (samples.size() < end) {
      phase += pitch_hz / sample_rate;
      phase -= std::floor(phase);
      const double flow = glottal_flow(phase);
      const double pulse = (flow - last_flow) * sample_rate / 8000.0;  // lip radiation: derivative of the flow
      last_flow = flow;
      double sound = now.voicing * pulse + now.noise * 0.25 * random.normal();
      for (Resonator& formant : tract) sound = formant(sound);
      samples.push_back(static_cast<float>(sound));
    }
  }
  set_level(samples);
  return samples;
}

}  // namespace myxtts
