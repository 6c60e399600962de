// One training step: forward, backward, and after the last batch of an accumulation the update. On a GPU both are
// recorded once a shape and replayed.
#pragma once

#include "loader/loader.h"
#include "model/voice.h"
#include "train/figures.h"
#include "train/optimizer.h"
#include "train/recording.h"
#include "train/retrace_monitor.h"

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace myxtts {

struct StepSettings {
  OptimizerSettings optimizer;
  at::Device device = at::kCPU;
  at::ScalarType type = at::kFloat;  // of the weights that the model computes with
  int64_t accumulation = 1;
  bool record = false;
  bool fused = true;     // the update; the voice knows for itself
  bool inspect = false;  // everything that is computed; not with `record`
};

class TrainingStep {
 public:
  // `initial` is where training starts: float, on the CPU. Keeps a reference to the voice.
  TrainingStep(const Voice& voice, const at::Tensor& initial, const StepSettings& settings);
  ~TrainingStep();

  // Records a step for each of these shapes, before the first; others are recorded when they come. Does nothing where
  // steps are not recorded.
  void record(const std::vector<StepSignature>& shapes);
  int64_t recordings() const { return static_cast<int64_t>(recorded_.size()); }

  // Adds the gradient of one batch, of as many between two updates as are accumulated. What is random in it follows
  // from `seed` alone.
  void add(const VoiceBatch& batch, uint64_t seed);
  void update(double learning_rate);

  // Of the last update; waits for it.
  StepFigures figures();

  // The same without waiting: sent to the host once the update is done, and read when they have arrived.
  void send_figures();
  bool figures_arrived() const;
  StepFigures sent_figures() const;

  // The losses of batches by the averaged weights, each with its weight: begin, evaluate each, and read.
  void begin_evaluation();
  void evaluate(const VoiceBatch& batch, uint64_t seed, double weight);
  StepFigures end_evaluation();

  const OptimizerState& state() const { return state_; }
  OptimizerState& state() { return state_; }
  void reload();  // after `state().master` was changed from outside

  Weights averaged_weights() const;

  StreamHandle stream() const { return stream_ ? stream_->handle() : nullptr; }

 private:
  struct Recorded {
    VoiceBatch batch;  // what is replayed reads from here
    FlowNoise noise;
    std::unique_ptr<Recording> work;
  };

  void add_gradient(const VoiceBatch& batch, const FlowNoise& noise);
  void add_evaluation(const VoiceBatch& batch, const FlowNoise& noise);
  void apply_gradient();
  void run(const VoiceBatch& batch, uint64_t seed, bool validation);
  Recorded& recorded(const StepSignature& shape);

  const Voice& voice_;
  StepSettings settings_;
  std::unique_ptr<OwnStream> stream_;
  OptimizerState state_;
  Weights weights_;
  Weights average_;  // in the type that the model computes with, for evaluation
  at::Tensor learning_rate_;
  at::Tensor sums_;     // of the batches since the last update: total, prior, duration, flow
  at::Tensor figures_;  // of the last update
  at::Tensor sent_;     // to the host
  std::unique_ptr<StreamMark> arrival_;
  at::Tensor evaluated_, evaluation_weight_;
  double evaluation_weights_ = 0;

  std::unique_ptr<Recorder> recorder_;
  std::map<StepSignature, Recorded> recorded_;
  std::unique_ptr<Recording> recorded_update_;
};

// As a configuration asks for it. Without static shapes nothing is recorded: nearly every batch would be a recording of
// its own.
StepSettings step_settings(const Config& config, at::Device device);

// Whether the voice computes with fused kernels: not where everything is looked at.
bool uses_fused_kernels(const TrainingConfig& training);

// The loader's batch as tensors on its device; cut to its longest clip where `dynamic`.
VoiceBatch wrap_batch(const LoadedBatch& batch, const Corpus& corpus, at::Device device, bool dynamic);

StepSignature signature_of(const VoiceBatch& batch, bool validation);

// Drawn on the device; the same for the same seed.
FlowNoise draw_noise(const VoiceBatch& batch, uint64_t seed);

}  // namespace myxtts
