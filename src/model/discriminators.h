// What tells a vocoder's waveforms from recordings while it is trained: several small networks, each with a view of its
// own. Half of them fold the waveform at a period (HiFi-GAN), the others look at spectra of several resolutions
// (UnivNet). Immutable; any thread.
#pragma once

#include "model/parameters.h"
#include "model/spectrum.h"
#include "model/trunk.h"

#include <array>
#include <span>
#include <string>
#include <vector>

namespace myxtts {

// What one of them says of a batch: a score for each place, and all activations on the way there.
struct Judgement {
  at::Tensor score;
  std::vector<at::Tensor> features;
};

struct DiscriminatorTables {
  std::vector<SpectrumTables> spectra;
};

class Discriminators {
 public:
  // `narrower`: so many times fewer channels than HiFi-GAN's.
  explicit Discriminators(int64_t narrower = 1);

  const ParameterLayout& layout() const { return layout_; }
  static DiscriminatorTables make_tables(at::Device device);
  static size_t periods();                    // how many fold the waveform; they are the first
  static std::span<const int64_t> windows();  // of the others' spectra, in samples; a hop is a quarter

  // Magnitudes [rows, count, bins] of each resolution; windows are centred on multiples of the hop.
  static std::vector<at::Tensor> spectra(const DiscriminatorTables& tables, const at::Tensor& samples);

  // `samples` is float [rows, samples], `spectra` are its own.
  std::vector<Judgement> judge(const Weights& weights, const at::Tensor& samples,
                               const std::vector<at::Tensor>& spectra) const;

 private:
  // A convolution of two dimensions; weights are [channels, height, width, channels before].
  struct Conv {
    size_t weight, bias;
    std::array<int64_t, 2> stride;
  };
  Conv add_conv(const std::string& name, std::array<int64_t, 4> shape, std::array<int64_t, 2> stride);
  static at::Tensor convolve(const Weights& weights, const Conv& conv, const at::Tensor& x);
  static Judgement run(const Weights& weights, const std::vector<Conv>& convs, at::Tensor x);

  ParameterLayout layout_;
  std::vector<std::vector<Conv>> by_period_, by_resolution_;
};

// Hinge losses, float scalars. Each is a mean over the discriminators of a kind; those of spectra count a tenth.
// Of a batch whose first half are recordings.
at::Tensor discriminator_loss(const std::vector<Judgement>& real_and_made);
at::Tensor adversarial_loss(const std::vector<Judgement>& made);
// How far apart the features are.
at::Tensor feature_loss(const std::vector<Judgement>& real, const std::vector<Judgement>& made);

}  // namespace myxtts
