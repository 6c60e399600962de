#include "audio/level.h"
#include "base/work_clock.h"
#include "features/cpu/mel_kernel.h"
#include "features/filter_bank.h"
#include "features/mel.h"
#include "features/padding.h"
#include "features/rounding.h"

#include <cmath>
#include <cstring>

namespace myxtts {
namespace {

template <typename Scalar>
MelCoefficients<Scalar> make_numbers(const MelSpec& spec, const std::vector<MelFilter>& filters) {
  MelCoefficients<Scalar> numbers;
  numbers.passes = plan_fft<Scalar>(spec.n_fft / 2);
  numbers.untangle = untangling_turns<Scalar>(spec.n_fft);
  for (const double w : mel_window(spec)) numbers.window.push_back(static_cast<Scalar>(w));
  for (const MelFilter& filter : filters) {
    for (const double w : filter.weights) numbers.weights.push_back(static_cast<Scalar>(w));
  }
  return numbers;
}

EightFrames kernel_for_this_cpu() { return has_avx2() ? avx2::mel_eight_frames : any_cpu::mel_eight_frames; }

void apply_range(const MelSpec& spec, std::span<float> values) {
  if (spec.range == MelRange::none || values.empty()) return;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const float least = *low, most = *high;
  if (spec.range == MelRange::whisper) {
    for (float& x : values) x = (std::max(x, most - 8.0F) + 4.0F) * 0.25F;
    return;
  }
  const auto base = static_cast<float>(spec.range_low), width = static_cast<float>(spec.range_high - spec.range_low);
  const float scale = most > least ? width / (most - least) : 0.0F;
  for (float& x : values) x = base + (x - least) * scale;
}

}  // namespace

MelTables::MelTables(const MelSpec& wanted) : spec(wanted) {
  const std::vector<MelFilter> filters = mel_filters(spec);
  bins = used_bins(filters);
  for (const MelFilter& filter : filters) {
    first_bin.push_back(filter.first_bin);
    taps.push_back(static_cast<int>(filter.weights.size()));
  }
  rounding_thresholds = myxtts::rounding_thresholds(spec, filters);
  in_float = make_numbers<float>(spec, filters);
  in_double = make_numbers<double>(spec, filters);
}

size_t MelTables::scratch_bytes() const {
  const int mel_vectors = (spec.n_mels + 7) / 8 * 8;
  constexpr size_t vector_bytes = 32;
  return vector_bytes * static_cast<size_t>(mel_vectors + 2 * spec.n_fft + bins);
}

struct MelCpu::State {
  MelTables tables;
  EightFrames kernel = kernel_for_this_cpu();
  std::vector<float> padded;  // the clip with padding on both sides
  std::vector<std::byte> scratch;

  explicit State(const MelSpec& spec) : tables(spec), scratch(tables.scratch_bytes() + scratch_alignment) {}

  void* aligned_scratch() {
    void* at = scratch.data();
    size_t room = scratch.size();
    return std::align(scratch_alignment, tables.scratch_bytes(), at, room);
  }

  // Samples from the start of the first window to the end of the last.
  void pad(std::span<const float> samples, int64_t frames) {
    const MelSpec& spec = tables.spec;
    const auto length = static_cast<int64_t>(samples.size());
    const int64_t before = -spec.first_sample();
    const int64_t total = (frames - 1) * spec.hop_length + spec.n_fft;
    const bool zeros = spec.padding == MelPadding::centre_zeros || spec.padding == MelPadding::end;
    const bool levelled = spec.target_rms > 0;
    const float gain = levelled ? gain_to_rms(samples, spec.target_rms) : 1.0F;
    padded.resize(static_cast<size_t>(total));
    const auto outside = [&](int64_t i) {
      return zeros ? 0.0F : samples[static_cast<size_t>(reflected_index(i - before, length))];
    };
    const int64_t inside_end = std::min(total, before + length);
    for (int64_t i = 0; i < before; ++i) padded[static_cast<size_t>(i)] = outside(i);
    std::memcpy(padded.data() + before, samples.data(), static_cast<size_t>(inside_end - before) * sizeof(float));
    for (int64_t i = inside_end; i < total; ++i) padded[static_cast<size_t>(i)] = outside(i);
    if (levelled) {
      for (float& x : padded) x = std::clamp(x * gain, -1.0F, 1.0F);
    }
  }
};

double mel_cpu_limit_frames_per_s(const MelSpec& spec) {
  const MelTables tables(spec);
  const double n = spec.n_fft, taps = static_cast<double>(tables.in_float.weights.size());
  const double transform = 2.0 * n * std::log2(n) - 4.0 * n;  // split-radix real FFT: close to the lowest known count
  const double flops = n + transform + 4.0 * tables.bins + 2.0 * taps + 20.0 * spec.n_mels;
  return (has_avx2() ? avx2::peak_flops_per_s() : any_cpu::peak_flops_per_s()) / flops;
}

MelCpu::MelCpu(const MelSpec& spec) : state_(std::make_unique<State>(spec)) {}
MelCpu::~MelCpu() = default;
MelCpu::MelCpu(MelCpu&&) noexcept = default;

const MelSpec& MelCpu::spec() const { return state_->tables.spec; }

void MelCpu::compute(std::span<const float> samples, std::span<float> out) {
  const WorkTimer timer(&WorkClock::features_ns);
  const int64_t frames = samples.empty() ? 0 : spec().frames(static_cast<int64_t>(samples.size()));
  if (frames == 0) return;
  state_->pad(samples, frames);
  void* scratch = state_->aligned_scratch();
  for (int64_t first = 0; first < frames; first += mel_lanes) {
    const float* windows[mel_lanes];
    float* rows[mel_lanes];
    for (int lane = 0; lane < mel_lanes; ++lane) {
      const int64_t frame = std::min(first + lane, frames - 1);
      windows[lane] = state_->padded.data() + frame * spec().hop_length;
      rows[lane] = first + lane < frames ? out.data() + frame * spec().n_mels : nullptr;
    }
    state_->kernel(state_->tables, windows, rows, scratch);
  }
  apply_range(spec(), out.first(static_cast<size_t>(frames * spec().n_mels)));
}

Mel MelCpu::compute(std::span<const float> samples) {
  Mel mel{samples.empty() ? 0 : spec().frames(static_cast<int64_t>(samples.size())), spec().n_mels, {}};
  mel.values.resize(static_cast<size_t>(mel.frames * mel.n_mels));
  compute(samples, mel.values);
  return mel;
}

}  // namespace myxtts
