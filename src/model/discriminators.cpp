#include "model/discriminators.h"

#include "model/windows.h"

#include <array>
#include <cmath>
#include <functional>
#include <string>

#include <ATen/ATen.h>

namespace myxtts {
namespace {

constexpr std::array<int64_t, 5> all_periods = {2, 3, 5, 7, 11};
constexpr std::array<int64_t, 3> window_sizes = {512, 1024, 2048};
constexpr double slope = 0.1;              // of the activations below zero
constexpr double weight_of_spectra = 0.1;  // against those that fold the waveform

// The mean of `value` over the discriminators of each kind, weighted.
at::Tensor weighted_mean(size_t count, const std::function<at::Tensor(size_t)>& value) {
  at::Tensor folded, spectral;
  for (size_t i = 0; i < count; ++i) {
    at::Tensor& sum = i < all_periods.size() ? folded : spectral;
    sum = sum.defined() ? sum + value(i) : value(i);
  }
  return folded / static_cast<double>(all_periods.size()) +
         spectral * (weight_of_spectra / static_cast<double>(window_sizes.size()));
}

}  // namespace

size_t Discriminators::periods() { return all_periods.size(); }
std::span<const int64_t> Discriminators::windows() { return window_sizes; }

Discriminators::Conv Discriminators::add_conv(const std::string& name, std::array<int64_t, 4> shape,
                                              std::array<int64_t, 2> stride) {
  const auto inputs = static_cast<double>(shape[1] * shape[2] * shape[3]);
  Conv conv{0, 0, stride};
  conv.bias = layout_.add(name + ".bias", {shape[0]}, 0);
  conv.weight = layout_.add(name + ".weight", {shape.begin(), shape.end()}, 1 / std::sqrt(inputs));
  return conv;
}

Discriminators::Discriminators(int64_t narrower) {
  for (const int64_t period : all_periods) {
    const std::string name = "period." + std::to_string(period) + ".";
    std::vector<Conv>& convs = by_period_.emplace_back();
    constexpr int64_t kernel = 5, stride = 3;
    int64_t before = 1;
    for (const int64_t widest : {32, 128, 512, 1024}) {
      const int64_t channels = widest / narrower;
      convs.push_back(add_conv(name + std::to_string(convs.size()), {channels, kernel, 1, before}, {stride, 1}));
      before = channels;
    }
    convs.push_back(add_conv(name + "4", {before, kernel, 1, before}, {1, 1}));
    convs.push_back(add_conv(name + "out", {1, 3, 1, before}, {1, 1}));
  }
  for (const int64_t window : window_sizes) {
    const std::string name = "spectrum." + std::to_string(window) + ".";
    std::vector<Conv>& convs = by_resolution_.emplace_back();
    const int64_t channels = 32 / narrower;
    convs.push_back(add_conv(name + "0", {channels, 3, 9, 1}, {1, 1}));
    for (const char* number : {"1", "2", "3"}) {
      convs.push_back(add_conv(name + number, {channels, 3, 9, channels}, {1, 2}));
    }
    convs.push_back(add_conv(name + "4", {channels, 3, 3, channels}, {1, 1}));
    convs.push_back(add_conv(name + "out", {1, 3, 3, channels}, {1, 1}));
  }
  layout_.arrange();
}

DiscriminatorTables Discriminators::make_tables(at::Device device) {
  DiscriminatorTables tables;
  for (const int64_t window : window_sizes) {
    tables.spectra.push_back(make_spectrum_tables(centred_frames(window, window / 4), device));
  }
  return tables;
}

// `x` is [rows, height, width, channels]. Where a window has few values beside what it makes of them, windows laid side
// by side and one matrix product are faster than what libraries offer for convolutions; elsewhere they would be too
// much to write.
at::Tensor Discriminators::convolve(const Weights& weights, const Conv& conv, const at::Tensor& x) {
  const at::Tensor &weight = weights[conv.weight], &bias = weights[conv.bias];
  const int64_t channels = weight.size(0), height = weight.size(1), width = weight.size(2);
  if (width > 1 && weight.size(3) > 1) {
    return at::conv2d(x.permute({0, 3, 1, 2}), weight.permute({0, 3, 1, 2}), bias, conv.stride, {height / 2, width / 2})
        .permute({0, 2, 3, 1});
  }
  const at::Tensor windows = lay_windows(x, height, width, conv.stride[0], conv.stride[1]);
  const at::Tensor flat = weight.view({channels, -1});
  const int64_t missing = windows.size(3) - flat.size(1);
  return at::linear(windows, missing > 0 ? at::constant_pad_nd(flat, {0, missing}) : flat, bias);
}

Judgement Discriminators::run(const Weights& weights, const std::vector<Conv>& convs, at::Tensor x) {
  Judgement judgement;
  for (const Conv& conv : convs) {
    x = convolve(weights, conv, x);
    if (&conv == &convs.back()) break;
    x = at::leaky_relu(x, slope);
    judgement.features.push_back(x);
  }
  judgement.score = x.to(at::kFloat);
  return judgement;
}

std::vector<at::Tensor> Discriminators::spectra(const DiscriminatorTables& tables, const at::Tensor& samples) {
  std::vector<at::Tensor> spectra;
  for (const SpectrumTables& table : tables.spectra) {
    const int64_t count = samples.size(1) / table.frames.hop_length + 1;
    spectra.push_back(magnitudes(spectrum(table, samples, count)));
  }
  return spectra;
}

std::vector<Judgement> Discriminators::judge(const Weights& weights, const at::Tensor& samples,
                                             const std::vector<at::Tensor>& spectra) const {
  const at::ScalarType type = weights.tensors.front().scalar_type();
  const int64_t rows = samples.size(0), length = samples.size(1);
  std::vector<Judgement> judgements;
  for (size_t i = 0; i < all_periods.size(); ++i) {
    const int64_t period = all_periods[i], folds = length / period;
    // Samples that are one period apart above each other. What does not fill a fold is left out.
    const at::Tensor folded = samples.narrow(1, 0, folds * period).reshape({rows, folds, period, 1});
    judgements.push_back(run(weights, by_period_[i], folded.to(type)));
  }
  for (size_t i = 0; i < window_sizes.size(); ++i) {
    judgements.push_back(run(weights, by_resolution_[i], spectra[i].unsqueeze(3).to(type)));
  }
  return judgements;
}

at::Tensor discriminator_loss(const std::vector<Judgement>& real_and_made) {
  return weighted_mean(real_and_made.size(), [&](size_t i) {
    const std::vector<at::Tensor> halves = real_and_made[i].score.chunk(2);
    return (1 - halves[0]).relu().mean() + (1 + halves[1]).relu().mean();
  });
}

at::Tensor adversarial_loss(const std::vector<Judgement>& made) {
  return weighted_mean(made.size(), [&](size_t i) { return (1 - made[i].score).relu().mean(); });
}

at::Tensor feature_loss(const std::vector<Judgement>& real, const std::vector<Judgement>& made) {
  return weighted_mean(real.size(), [&](size_t i) {
    at::Tensor sum;
    for (size_t k = 0; k < real[i].features.size(); ++k) {
      constexpr double nowhere_smooth = 1e-20;  // but where they are equal: with 0 the gradient there is no number
      const at::Tensor distance =
          at::smooth_l1_loss(made[i].features[k], real[i].features[k], at::Reduction::Mean, nowhere_smooth)
              .to(at::kFloat);
      sum = sum.defined() ? sum + distance : distance;
    }
    return sum;
  });
}

}  // namespace myxtts
