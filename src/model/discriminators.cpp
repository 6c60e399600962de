#include "model/discriminators.h"

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

at::Tensor in_float(const at::Tensor& x) { return x.to(at::kFloat); }

}  // namespace

size_t Discriminators::periods() { return all_periods.size(); }
size_t Discriminators::resolutions() { return window_sizes.size(); }

Discriminators::Conv Discriminators::add_conv(const std::string& name, std::vector<int64_t> shape,
                                              std::vector<int64_t> stride) {
  int64_t inputs = 1;
  Conv conv;
  for (size_t i = 1; i < shape.size(); ++i) {
    inputs *= shape[i];
    if (i >= 2) conv.padding.push_back(shape[i] / 2);
  }
  conv.bias = layout_.add(name + ".bias", {shape[0]}, 0);
  conv.weight = layout_.add(name + ".weight", std::move(shape), 1 / std::sqrt(static_cast<double>(inputs)));
  conv.stride = std::move(stride);
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
      convs.push_back(add_conv(name + std::to_string(convs.size()), {channels, before, kernel}, {stride}));
      before = channels;
    }
    convs.push_back(add_conv(name + "4", {before, before, kernel}, {1}));
    convs.push_back(add_conv(name + "out", {1, before, 3}, {1}));
  }
  for (const int64_t window : window_sizes) {
    const std::string name = "spectrum." + std::to_string(window) + ".";
    std::vector<Conv>& convs = by_resolution_.emplace_back();
    const int64_t channels = 32 / narrower;
    convs.push_back(add_conv(name + "0", {channels, 1, 3, 9}, {1, 1}));
    for (const char* number : {"1", "2", "3"}) {
      convs.push_back(add_conv(name + number, {channels, channels, 3, 9}, {1, 2}));
    }
    convs.push_back(add_conv(name + "4", {channels, channels, 3, 3}, {1, 1}));
    convs.push_back(add_conv(name + "out", {1, channels, 3, 3}, {1, 1}));
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

Judgement Discriminators::run(const Weights& weights, const std::vector<Conv>& convs, at::Tensor x) {
  Judgement judgement;
  for (const Conv& conv : convs) {
    const at::Tensor &weight = weights[conv.weight], &bias = weights[conv.bias];
    x = weight.dim() == 3 ? at::conv1d(x, weight, bias, conv.stride, conv.padding)
                          : at::conv2d(x, weight, bias, conv.stride, conv.padding);
    if (&conv == &convs.back()) break;
    x = at::leaky_relu(x, slope);
    judgement.features.push_back(x);
  }
  judgement.score = in_float(x);
  return judgement;
}

std::vector<Judgement> Discriminators::judge(const Weights& weights, const DiscriminatorTables& tables,
                                             const at::Tensor& samples) const {
  const at::ScalarType type = weights.tensors.front().scalar_type();
  const int64_t rows = samples.size(0), length = samples.size(1);
  std::vector<Judgement> judgements;
  for (size_t i = 0; i < all_periods.size(); ++i) {
    const int64_t period = all_periods[i], folds = length / period;
    // [rows * period, 1, folds]: samples that are one period apart side by side. What does not fill a fold is left out.
    const at::Tensor folded =
        samples.narrow(1, 0, folds * period).view({rows, folds, period}).transpose(1, 2).reshape({-1, 1, folds});
    judgements.push_back(run(weights, by_period_[i], folded.to(type)));
  }
  for (size_t i = 0; i < window_sizes.size(); ++i) {
    const SpectrumTables& table = tables.spectra[i];
    const int64_t count = length / table.frames.hop_length + 1;
    const at::Tensor magnitude = magnitudes(spectrum(table, samples, count));
    judgements.push_back(run(weights, by_resolution_[i], magnitude.unsqueeze(1).to(type)));
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
      const at::Tensor distance = (in_float(real[i].features[k]) - in_float(made[i].features[k])).abs().mean();
      sum = sum.defined() ? sum + distance : distance;
    }
    return sum;
  });
}

}  // namespace myxtts
