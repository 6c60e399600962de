// A vocoder as something to train: its discriminators are one group, its generator is the last. Without discriminators
// the generator learns from distances between spectra alone.
#pragma once

#include "model/discriminators.h"
#include "synth/vocoder_file.h"
#include "train/log_mel.h"
#include "train/loudness.h"
#include "train/teacher.h"
#include "train/trainable.h"

#include <optional>

namespace myxtts {

class VocoderTrainable : public Trainable {
 public:
  struct Options {
    bool adversarial = true;                      // with discriminators
    std::map<std::string, std::string> metadata;  // what a checkpoint says besides weights
    std::optional<TeacherMels> teacher;           // whose mels waveforms are made of, instead of the recordings'
  };
  VocoderTrainable(const VocoderSpec& spec, const MelSpec& mel, const OptimizerSettings& optimizer, bool fused,
                   at::Device device, Options options);

  const Vocoder& vocoder() const { return vocoder_; }

  std::vector<std::string> arrays() const override;
  std::vector<ParameterGroup> groups() const override;
  TensorMap example(const StepSignature& shape, at::Device device) const override;
  TensorMap make_noise(const TensorMap&) const override { return {}; }
  void draw_noise(TensorMap&, at::Generator, const RowPlace&) const override {}
  Counts counts(std::span<const RowLength> rows) const override;
  std::vector<at::Tensor> losses(size_t group, std::span<const Weights> weights, const TensorMap& batch,
                                 const TensorMap& noise, const Inspect& inspect) const override;
  std::vector<std::string> measures() const override { return {"mel_distance", "loudness_distance"}; }
  std::vector<at::Tensor> measure(std::span<const Weights> weights, const TensorMap& batch,
                                  const TensorMap& noise) const override;
  bool overwrites_gradients(const Weights& weights) const override;
  std::map<std::string, std::string> metadata() const override { return options_.metadata; }
  Samples samples(std::span<const Weights> weights, const Corpus& corpus, const BatchPlan& plan,
                  at::Device device) const override;

 private:
  at::Tensor input(const TensorMap& batch) const;
  at::Tensor waveform(std::span<const Weights> weights, const TensorMap& batch, const Inspect& inspect) const;
  // Magnitudes in each resolution, for the discriminators and for distances.
  using Spectra = std::vector<at::Tensor>;
  Spectra spectra(const at::Tensor& samples) const { return Discriminators::spectra(discriminator_tables_, samples); }
  // How far the log-mels are apart, in the mean over several resolutions, all frequencies and the rows with a clip.
  at::Tensor mel_distance(const Spectra& made, const Spectra& real, const TensorMap& batch) const;
  std::vector<at::Tensor> distances(std::span<const Weights> weights, const TensorMap& batch,
                                    const Inspect& inspect) const;

  Vocoder vocoder_;
  Discriminators discriminators_;
  MelSpec mel_;
  OptimizerSettings optimizer_;
  bool fused_;
  SpectrumTables tables_;
  DiscriminatorTables discriminator_tables_;
  std::vector<MelTables> mels_;
  LoudnessTables loudness_;
  Options options_;
};

}  // namespace myxtts
