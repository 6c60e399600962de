#include "train/step.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

namespace myxtts {

TrainingStep::TrainingStep(const Voice& voice, const at::Tensor& initial, const OptimizerSettings& settings,
                           at::Device device, at::ScalarType type, int64_t accumulation)
    : voice_(voice), settings_(settings), device_(device), accumulation_(accumulation) {
  state_ = make_optimizer_state(initial.to(device));
  weights_ = make_weights(voice.layout(), type == at::kFloat ? state_.master : state_.master.to(type), true);
  learning_rate_ = at::zeros({}, state_.master.options());
  sums_ = at::zeros({4}, state_.master.options());
}

void TrainingStep::add(const VoiceBatch& batch, uint64_t seed) {
  const VoiceLosses losses = voice_.losses(weights_, batch, draw_noise(batch, seed));
  (losses.total / static_cast<double>(accumulation_)).backward();
  const at::NoGradGuard no_gradients;
  sums_.add_(at::stack({losses.total, losses.prior, losses.duration, losses.flow}).detach(),
             1 / static_cast<double>(accumulation_));
}

void TrainingStep::update(double learning_rate) {
  learning_rate_.fill_(learning_rate);
  const at::Tensor norm = update_weights(settings_, voice_.layout(), learning_rate_, weights_, state_);
  figures_ = at::cat({sums_, at::stack({norm, state_.skipped, state_.skipped_total})});
  sums_.zero_();
}

StepFigures TrainingStep::last_figures() {
  StepFigures figures;
  if (!figures_.defined()) return figures;
  const at::Tensor host = figures_.cpu();
  const float* values = host.const_data_ptr<float>();
  figures.loss = values[0], figures.prior = values[1], figures.duration = values[2], figures.flow = values[3];
  figures.gradient_norm = values[4], figures.skipped_in_a_row = values[5], figures.skipped_total = values[6];
  return figures;
}

void TrainingStep::reload() {
  const at::NoGradGuard no_gradients;
  if (weights_.flat.scalar_type() != at::kFloat) weights_.flat.copy_(state_.master);
}

Weights TrainingStep::averaged_weights() const {
  return make_weights(voice_.layout(), state_.average.to(weights_.flat.scalar_type()), false);
}

VoiceBatch wrap_batch(const LoadedBatch& batch, const Corpus& corpus, at::Device device, bool dynamic) {
  const auto ints = at::TensorOptions().dtype(at::kInt).device(device);
  VoiceBatch wrapped;
  wrapped.tokens = at::from_blob(batch.tokens, {batch.rows, batch.text_length}, ints);
  wrapped.text_lengths = at::from_blob(batch.text_lengths, {batch.rows}, ints);
  wrapped.mel_lengths = at::from_blob(batch.mel_lengths, {batch.rows}, ints);
  wrapped.mel = at::from_blob(batch.mel, {batch.rows, batch.mel_frames, batch.n_mels}, ints.dtype(at::kFloat));
  if (dynamic) {
    int64_t text = 1, frames = 1;
    for (const uint32_t clip : batch.clips) {
      if (clip == no_clip) continue;
      const ClipLength& length = corpus.index.lengths()[clip];
      text = std::max<int64_t>(text, length.tokens);
      frames = std::max<int64_t>(frames, length.mel_frames);
    }
    wrapped.tokens = wrapped.tokens.narrow(1, 0, text).contiguous();
    wrapped.mel = wrapped.mel.narrow(1, 0, frames).contiguous();
  }
  return wrapped;
}

FlowNoise draw_noise(const VoiceBatch& batch, uint64_t seed) {
  const at::Device device = batch.mel.device();
  at::Generator generator = device.is_cpu() ? at::make_generator<at::CPUGeneratorImpl>(seed)
                                            : at::globalContext().defaultGenerator(device).clone();
  generator.set_current_seed(seed);
  FlowNoise noise;
  noise.time = at::empty({batch.mel.size(0)}, batch.mel.options()).uniform_(0, 1, generator);
  noise.noise = at::empty_like(batch.mel).normal_(0, 1, generator);
  return noise;
}

}  // namespace myxtts
