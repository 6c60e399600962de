// One training step: forward, backward, and after the last batch of an accumulation the update.
#pragma once

#include "model/voice.h"
#include "pipeline/loader.h"
#include "train/figures.h"
#include "train/optimizer.h"

#include <cstdint>

namespace myxtts {

class TrainingStep {
 public:
  // `initial` is where training starts: float, on the CPU. Computes on `device`, in `type`.
  TrainingStep(const Voice& voice, const at::Tensor& initial, const OptimizerSettings& settings, at::Device device,
               at::ScalarType type, int64_t accumulation);

  // Adds the gradient of one batch. What is random in it follows from `seed` alone.
  void add(const VoiceBatch& batch, uint64_t seed);
  void update(double learning_rate);

  // Of the last update; waits for it.
  StepFigures last_figures();

  const Voice& voice() const { return voice_; }
  const OptimizerState& state() const { return state_; }
  OptimizerState& state() { return state_; }
  // After `state().master` was changed from outside.
  void reload();

  // The averaged weights, for validation and synthesis.
  Weights averaged_weights() const;

 private:
  const Voice& voice_;
  OptimizerSettings settings_;
  at::Device device_;
  int64_t accumulation_;
  Weights weights_;
  OptimizerState state_;
  at::Tensor learning_rate_;
  at::Tensor sums_;     // of the batches since the last update: total, prior, duration, flow
  at::Tensor figures_;  // of the last update
};

// The loader's batch as tensors on its device; cut to its longest clip where `dynamic`.
VoiceBatch wrap_batch(const LoadedBatch& batch, const Corpus& corpus, at::Device device, bool dynamic);

// Drawn on the device; the same for the same seed.
FlowNoise draw_noise(const VoiceBatch& batch, uint64_t seed);

}  // namespace myxtts
