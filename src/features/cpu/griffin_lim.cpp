#include "features/cpu/griffin_lim.h"

#include "base/error.h"
#include "base/random.h"
#include "base/workers.h"
#include "features/cpu/griffin_lim_kernel.h"
#include "features/padding.h"

#include <cmath>
#include <functional>

namespace myxtts {
namespace {

// Inverts the logarithm and normalisation of a mel value.
float linear_mel(const MelSpec& spec, float value) {
  // Far above any signal, with a square that fits a float.
  constexpr double loudest = 1e9;
  double x = value;
  if (spec.range == MelRange::whisper) x = 4.0 * x - 4.0;
  x = x * spec.std + spec.mean;
  if (spec.log == MelLog::ln) x = std::exp(x) - spec.log_offset;
  if (spec.log == MelLog::log10) x = std::pow(10.0, x) - spec.log_offset;
  const double largest = spec.mel_power == 2 ? loudest * loudest : loudest;
  return x > 0.0 ? static_cast<float>(std::min(x, largest)) : 0.0F;  // also maps NaN to 0
}

// The clip including its padding: frames are read from it and overlap-added into it.
class PaddedSignal {
 public:
  PaddedSignal(const GriffinLimTables& tables, int64_t frames, int64_t samples)
      : tables_(tables),
        before_(-tables.spec.first_sample()),
        samples_(samples),
        end_((frames - 1) * tables.spec.hop_length + tables.spec.n_fft),
        reflects_(tables.spec.padding == MelPadding::centre || tables.spec.padding == MelPadding::hifigan) {
    const int64_t whole_blocks = (frames + mel_lanes - 1) / mel_lanes * mel_lanes;
    const int64_t last_end = (whole_blocks - 1) * tables.spec.hop_length + tables.spec.n_fft;
    values_.resize(static_cast<size_t>(std::max(last_end, before_ + samples)));
    find_gains(frames);
  }

  const float* frame(int64_t number) const { return values_.data() + number * tables_.spec.hop_length; }
  std::span<float> clip() {
    return std::span(values_).subspan(static_cast<size_t>(before_), static_cast<size_t>(samples_));
  }

  void set_noise(uint64_t seed) {
    Random random(seed);
    for (float& x : clip()) x = static_cast<float>(random.uniform(-1.0, 1.0));
    pad();
  }

  // Least-squares inverse STFT. Padding contributes to the samples that it repeats.
  void set_from_strips(const std::vector<float>& strips) {
    std::fill(values_.begin(), values_.end(), 0.0F);
    const size_t length = tables_.strip_samples();
    const size_t apart = static_cast<size_t>(mel_lanes) * static_cast<size_t>(tables_.spec.hop_length);
    for (size_t strip = 0; (strip + 1) * length <= strips.size(); ++strip) {
      const float* from = strips.data() + strip * length;
      float* to = values_.data() + strip * apart;
      for (size_t i = 0; i < length; ++i) to[i] += from[i];
    }
    fold(values_);
    const std::span<float> inside = clip();
    for (size_t i = 0; i < inside.size(); ++i) inside[i] *= gains_[i];
    pad();
  }

 private:
  // Calls `body(padding, repeated)` with the index of each padding sample and of the sample that it repeats.
  template <typename Body>
  void for_padding(const Body& body) const {
    const auto visit = [&](int64_t i) {
      body(static_cast<size_t>(i), static_cast<size_t>(before_ + reflected_index(i - before_, samples_)));
    };
    for (int64_t i = 0; i < before_; ++i) visit(i);
    for (int64_t i = before_ + samples_; i < end_; ++i) visit(i);
  }

  template <typename Values>
  void fold(Values& values) const {
    if (reflects_) for_padding([&](size_t padding, size_t repeated) { values[repeated] += values[padding]; });
  }

  void pad() {
    for_padding([&](size_t padding, size_t repeated) { values_[padding] = reflects_ ? values_[repeated] : 0.0F; });
  }

  void find_gains(int64_t frames) {
    std::vector<double> squares(values_.size());
    for (int64_t frame = 0; frame < frames; ++frame) {
      const auto first = static_cast<size_t>(frame * tables_.spec.hop_length);
      for (size_t i = 0; i < tables_.window.size(); ++i) {
        squares[first + i] += static_cast<double>(tables_.window[i]) * tables_.window[i];
      }
    }
    fold(squares);
    // Samples with almost no window weight would amplify noise.
    const double least = std::max(1e-3 * *std::max_element(squares.begin(), squares.end()), 1e-12);
    for (int64_t i = 0; i < samples_; ++i) {
      gains_.push_back(static_cast<float>(1.0 / std::max(squares[static_cast<size_t>(before_ + i)], least)));
    }
  }

  const GriffinLimTables& tables_;
  int64_t before_, samples_, end_;
  bool reflects_;
  std::vector<float> values_;
  std::vector<float> gains_;  // per sample: 1 / sum of squared windows
};

// Calls `body(first, end)` for parts of [0, count), one per thread.
void in_parts(size_t count, size_t threads, const std::function<void(size_t, size_t)>& body) {
  const size_t parts = std::clamp<size_t>(threads, 1, count);
  if (parts == 1) return body(0, count);
  parallel_for(parts, parts, [&](size_t part) { body(count * part / parts, count * (part + 1) / parts); });
}

// For the frames from `first` on; frames after the last are silent.
void find_magnitudes(const GriffinLimTables& tables, const GriffinLimKernel& kernel, std::span<const float> mel,
                     size_t first, EightFloats* magnitude, EightFloats* scratch) {
  const MelSpec& spec = tables.spec;
  const auto n_mels = static_cast<size_t>(spec.n_mels);
  std::vector<EightFloats> block(n_mels);
  for (size_t lane = 0; lane < mel_lanes; ++lane) {
    for (size_t m = 0; m < n_mels; ++m) {
      const size_t at = (first + lane) * n_mels + m;
      block[m].lane[lane] = at < mel.size() ? linear_mel(spec, mel[at]) : 0.0F;
    }
  }
  kernel.magnitudes(tables, block.data(), magnitude, scratch);
  const auto epsilon = static_cast<float>(spec.magnitude_epsilon);
  for (size_t bin = 0; bin < static_cast<size_t>(spec.bins()); ++bin) {
    for (float& x : magnitude[bin].lane) x = std::sqrt(spec.mel_power == 2 ? x : std::max(x * x - epsilon, 0.0F));
  }
}

}  // namespace

GriffinLimTables::GriffinLimTables(const MelSpec& wanted)
    : spec(wanted),
      passes(plan_fft<float>(spec.n_fft / 2)),
      untangle(untangling_turns<float>(spec.n_fft)),
      filters(mel_filters(spec)) {
  for (const double w : mel_window(spec)) {
    window.push_back(static_cast<float>(w));
    synthesis.push_back(static_cast<float>(w / spec.n_fft));
  }
  inverse_weights.resize(static_cast<size_t>(spec.bins()));
  for (const MelFilter& filter : filters) {
    for (size_t i = 0; i < filter.weights.size(); ++i) {
      weights.push_back(static_cast<float>(filter.weights[i]));
      inverse_weights[static_cast<size_t>(filter.first_bin) + i] += weights.back();
    }
  }
  for (float& x : inverse_weights) x = x > 0 ? 1.0F / x : 0.0F;
}

size_t GriffinLimTables::strip_samples() const {
  return static_cast<size_t>((mel_lanes - 1) * spec.hop_length + spec.n_fft);
}

size_t GriffinLimTables::scratch_values() const { return 2 * static_cast<size_t>(spec.n_fft); }

int64_t griffin_lim_samples(const MelSpec& spec, int64_t frames) {
  const bool centred = spec.padding == MelPadding::centre || spec.padding == MelPadding::centre_zeros;
  return std::max<int64_t>(0, frames - (centred && !spec.drop_last_frame ? 1 : 0)) * spec.hop_length;
}

std::vector<float> griffin_lim(const MelSpec& spec, std::span<const float> mel, int64_t frames,
                               const GriffinLimOptions& options) {
  if (spec.range == MelRange::min_max) {
    reject_input("griffin-lim",
                 "preset {} spreads every clip over a fixed range, so its mel cannot be made sound again", spec.name,
                 way_out("choose one without"));
  }
  if (mel.size() != static_cast<size_t>(frames * spec.n_mels)) {
    fail("griffin-lim", "the mel has {} values; {} frames of {} have {}", mel.size(), frames, spec.n_mels,
         frames * spec.n_mels);
  }
  if (options.iterations < 0 || !(options.momentum >= 0)) {
    fail("griffin-lim", "iterations ({}) and momentum ({}) must not be negative", options.iterations, options.momentum);
  }
  const int64_t samples = griffin_lim_samples(spec, frames);
  if (samples == 0) return {};

  const GriffinLimTables tables(spec);
  const GriffinLimKernel& kernel = has_avx2() ? avx2::griffin_lim_kernel : any_cpu::griffin_lim_kernel;
  const size_t blocks = static_cast<size_t>(frames + mel_lanes - 1) / mel_lanes,
               bins = static_cast<size_t>(spec.bins());
  std::vector<EightFloats> magnitude(blocks * bins), previous(2 * blocks * bins);
  in_parts(blocks, options.threads, [&](size_t first, size_t end) {
    std::vector<EightFloats> scratch(tables.scratch_values());
    for (size_t block = first; block < end; ++block) {
      find_magnitudes(tables, kernel, mel, block * mel_lanes, magnitude.data() + block * bins, scratch.data());
    }
  });

  PaddedSignal signal(tables, frames, samples);
  signal.set_noise(options.seed);
  std::vector<float> strips(blocks * tables.strip_samples());
  const auto share = static_cast<float>(options.momentum / (1.0 + options.momentum));
  for (int iteration = 0; iteration <= options.iterations; ++iteration) {
    const float share_now = iteration < 2 ? 0.0F : share;  // momentum needs two estimates first
    in_parts(blocks, options.threads, [&](size_t first, size_t end) {
      std::vector<EightFloats> scratch(tables.scratch_values());
      for (size_t block = first; block < end; ++block) {
        kernel.step(tables, signal.frame(static_cast<int64_t>(block * mel_lanes)), magnitude.data() + block * bins,
                    share_now, previous.data() + 2 * block * bins, strips.data() + block * tables.strip_samples(),
                    scratch.data());
      }
    });
    signal.set_from_strips(strips);
  }
  const std::span<float> clip = signal.clip();
  return {clip.begin(), clip.end()};
}

}  // namespace myxtts
