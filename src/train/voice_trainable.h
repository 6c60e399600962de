// A voice as something to train: one group; its losses are those that the voice names.
#pragma once

#include "model/voice.h"
#include "synth/voice_description.h"
#include "train/trainable.h"

namespace myxtts {

class VoiceTrainable : public Trainable {
 public:
  VoiceTrainable(VoiceDescription description, const OptimizerSettings& optimizer, bool fused);
  // Of any size, for tests and benches: without texts there are neither metadata nor samples.
  VoiceTrainable(const VoiceSpec& spec, const OptimizerSettings& optimizer, bool fused, double dropout = 0);

  const Voice& voice() const { return voice_; }

  std::vector<std::string> arrays() const override;
  std::vector<ParameterGroup> groups() const override;
  TensorMap example(const StepSignature& shape, at::Device device) const override;
  TensorMap make_noise(const TensorMap& batch) const override;
  void draw_noise(TensorMap& noise, at::Generator generator, const RowPlace& rows) const override;
  Counts counts(std::span<const RowLength> rows) const override;
  std::vector<at::Tensor> losses(size_t group, std::span<const Weights> weights, const TensorMap& batch,
                                 const TensorMap& noise, const Inspect& inspect) const override;
  std::vector<Part> divided(const TensorMap& batch, const TensorMap& noise, int64_t most) const override;
  std::vector<std::string> measures() const override;
  std::vector<at::Tensor> measure(std::span<const Weights> weights, const TensorMap& batch,
                                  const TensorMap& noise) const override;
  // What the voice makes of a batch in the recordings' time: mels [rows, frames, n_mels].
  at::Tensor teacher_forced(const Weights& weights, const TensorMap& batch, const TensorMap& noise) const;
  bool overwrites_gradients(const Weights& weights) const override;
  std::map<std::string, std::string> metadata() const override;
  // An alignment, a mel beside the true one, and a spoken sentence: training.sample_text, or the clip's own.
  Samples samples(std::span<const Weights> weights, const Corpus& corpus, const BatchPlan& plan,
                  at::Device device) const override;

 private:
  FlowNoise flow_noise(const TensorMap& noise, const RowPlace& rows = {}) const;

  VoiceDescription description_;
  OptimizerSettings optimizer_;
  double dropout_, condition_dropout_ = 0.15;
  Voice voice_;
};

}  // namespace myxtts
