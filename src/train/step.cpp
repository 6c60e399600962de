#include "train/step.h"

#include "train/step_inspector.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

namespace myxtts {
namespace {

void fill_noise(FlowNoise& noise, uint64_t seed) {
  const at::Device device = noise.noise.device();
  at::Generator generator = device.is_cpu() ? at::make_generator<at::CPUGeneratorImpl>(seed)
                                            : at::globalContext().defaultGenerator(device).clone();
  generator.set_current_seed(seed);
  noise.time.uniform_(0, 1, generator);
  noise.noise.normal_(0, 1, generator);
}

StepFigures figures_from(const at::Tensor& host) {
  const float* values = host.const_data_ptr<float>();
  return {values[0], values[1], values[2], values[3], values[4], values[5], values[6]};
}

FlowNoise empty_noise(const VoiceBatch& batch) {
  return {at::empty({batch.mel.size(0)}, batch.mel.options()), at::empty_like(batch.mel)};
}

}  // namespace

TrainingStep::TrainingStep(const Voice& voice, const at::Tensor& initial, const StepSettings& settings)
    : voice_(voice), settings_(settings) {
  if (settings.device.is_cuda()) stream_ = use_own_stream(settings.device.index());
  state_ = make_optimizer_state(initial.to(settings.device, false, true));
  const bool half = settings.type != at::kFloat;
  weights_ = make_weights(voice.layout(), half ? state_.master.to(settings.type) : state_.master, true);
  weights_.fresh_trunks = settings.accumulation == 1 && voice.fuses(weights_.flat) && !settings.inspect;
  average_ = make_weights(voice.layout(), half ? state_.average.to(settings.type) : state_.average, false);
  const auto floats = state_.master.options();
  learning_rate_ = at::zeros({}, floats);
  sums_ = at::zeros({4}, floats);
  figures_ = at::zeros({7}, floats);
  sent_ = at::empty_like(figures_, at::TensorOptions(at::kCPU).pinned_memory(settings.device.is_cuda()));
  if (stream_) arrival_ = std::make_unique<StreamMark>(settings.device.index());
  evaluated_ = at::zeros({4}, floats);
  evaluation_weight_ = at::zeros({}, floats);
  if (settings.record) recorder_ = make_recorder(settings.device.index());
}

TrainingStep::~TrainingStep() = default;

void TrainingStep::add_gradient(const VoiceBatch& batch, const FlowNoise& noise) {
  VoiceLosses losses;
  const auto backward = [&] { add_gradients(losses.total / static_cast<double>(settings_.accumulation), weights_); };
  if (settings_.inspect) {
    StepInspector inspector;
    inspector.watch([&] {
      losses = voice_.losses(weights_, batch, noise, inspector.eye());
      inspector.see("the loss", losses.total);
      backward();
      StepInspector::see_gradients(voice_.layout(), weights_.gradients);
    });
  } else {
    losses = voice_.losses(weights_, batch, noise);
    backward();
  }
  const at::NoGradGuard no_gradients;
  sums_.add_(at::stack({losses.total, losses.prior, losses.duration, losses.flow}).detach(),
             1 / static_cast<double>(settings_.accumulation));
}

void TrainingStep::add_evaluation(const VoiceBatch& batch, const FlowNoise& noise) {
  const at::NoGradGuard no_gradients;
  VoiceLosses losses;
  if (settings_.inspect) {
    StepInspector inspector;
    inspector.watch([&] { losses = voice_.losses(average_, batch, noise, inspector.eye()); });
  } else {
    losses = voice_.losses(average_, batch, noise);
  }
  evaluated_.add_(at::stack({losses.total, losses.prior, losses.duration, losses.flow}) * evaluation_weight_);
}

void TrainingStep::apply_gradient() {
  const at::NoGradGuard no_gradients;
  const auto update = settings_.fused && settings_.device.is_cuda() ? update_weights_fused : update_weights;
  const at::Tensor norm = update(settings_.optimizer, voice_.layout(), learning_rate_, weights_, state_);
  figures_.copy_(at::cat({sums_, at::stack({norm, state_.skipped, state_.skipped_total})}));
  sums_.zero_();
}

void TrainingStep::record(const std::vector<StepSignature>& shapes) {
  if (!recorder_) return;
  // The longest first: what it leaves of the recordings' common memory is enough for the others.
  std::vector<StepSignature> longest_first = shapes;
  std::ranges::sort(longest_first, std::greater(), [](const StepSignature& shape) {
    return std::pair(!shape.validation, shape.rows * shape.mel_frames);
  });
  for (const StepSignature& shape : longest_first) recorded(shape);
  if (!recorded_update_) recorded_update_ = recorder_->record([this] { apply_gradient(); });
}

TrainingStep::Recorded& TrainingStep::recorded(const StepSignature& shape) {
  const auto found = recorded_.find(shape);
  if (found != recorded_.end()) return found->second;
  const auto ints = state_.master.options().dtype(at::kInt);
  Recorded& made = recorded_[shape];
  made.batch = {at::full({shape.rows, shape.text_length}, Vocabulary::first_symbol, ints),
                at::full({shape.rows}, std::min(shape.text_length, shape.mel_frames), ints),
                at::full({shape.rows}, shape.mel_frames, ints),
                at::zeros({shape.rows, shape.mel_frames, voice_.spec().n_mels}, state_.master.options())};
  made.noise = draw_noise(made.batch, 1);
  const auto work = [&] {
    shape.validation ? add_evaluation(made.batch, made.noise) : add_gradient(made.batch, made.noise);
  };
  // The first of its kind once as it is, so that libraries have made what they keep; what it added is taken away again.
  // What a batch that is being accumulated has added stays.
  const auto same_kind = [&](const auto& other) { return other.first.validation == shape.validation; };
  if (std::ranges::count_if(recorded_, same_kind) == 1) {
    const at::Tensor gradients = weights_.gradients.clone(), sums = sums_.clone(), evaluated = evaluated_.clone();
    work();
    weights_.gradients.copy_(gradients);
    sums_.copy_(sums);
    evaluated_.copy_(evaluated);
  }
  made.work = recorder_->record(work);
  return made;
}

void TrainingStep::run(const VoiceBatch& batch, uint64_t seed, bool validation) {
  if (!recorder_) {
    const FlowNoise noise = draw_noise(batch, seed);
    validation ? add_evaluation(batch, noise) : add_gradient(batch, noise);
    return;
  }
  Recorded& shape = recorded(signature_of(batch, validation));
  shape.batch.tokens.copy_(batch.tokens, true);
  shape.batch.text_lengths.copy_(batch.text_lengths, true);
  shape.batch.mel_lengths.copy_(batch.mel_lengths, true);
  shape.batch.mel.copy_(batch.mel, true);
  fill_noise(shape.noise, seed);
  shape.work->replay();
}

void TrainingStep::add(const VoiceBatch& batch, uint64_t seed) { run(batch, seed, false); }

void TrainingStep::update(double learning_rate) {
  learning_rate_.fill_(learning_rate);
  if (recorded_update_) {
    recorded_update_->replay();
  } else {
    apply_gradient();
  }
}

StepFigures TrainingStep::figures() { return figures_from(figures_.cpu()); }

void TrainingStep::send_figures() {
  sent_.copy_(figures_, true);
  if (arrival_) arrival_->set(stream());
}

bool TrainingStep::figures_arrived() const { return !arrival_ || arrival_->reached(); }

StepFigures TrainingStep::sent_figures() const {
  if (arrival_) arrival_->wait();
  return figures_from(sent_);
}

void TrainingStep::begin_evaluation() {
  const at::NoGradGuard no_gradients;
  if (settings_.type != at::kFloat) average_.flat.copy_(state_.average);
  evaluated_.zero_();
  evaluation_weights_ = 0;
}

void TrainingStep::evaluate(const VoiceBatch& batch, uint64_t seed, double weight) {
  evaluation_weight_.fill_(weight);
  evaluation_weights_ += weight;
  run(batch, seed, true);
}

StepFigures TrainingStep::end_evaluation() {
  const at::Tensor host = (evaluated_ / std::max(1.0, evaluation_weights_)).cpu();
  const float* values = host.const_data_ptr<float>();
  return {values[0], values[1], values[2], values[3]};
}

void TrainingStep::reload() {
  const at::NoGradGuard no_gradients;
  if (settings_.type != at::kFloat) weights_.flat.copy_(state_.master);
}

Weights TrainingStep::averaged_weights() const {
  return make_weights(voice_.layout(), state_.average.to(settings_.type), false);
}

bool uses_fused_kernels(const TrainingConfig& training) {
  return training.enable_fused_kernels && !training.enable_eager_debug;
}

StepSettings step_settings(const Config& config, at::Device device) {
  const TrainingConfig& training = config.training;
  StepSettings settings;
  settings.optimizer.weight_decay = training.weight_decay;
  settings.optimizer.gradient_clip = training.gradient_clip;
  settings.optimizer.average_decay = training.ema_decay;
  settings.device = device;
  settings.type = device.is_cuda() && training.optimization_level != "basic" ? at::kBFloat16 : at::kFloat;
  settings.accumulation = training.gradient_accumulation_steps;
  settings.fused = uses_fused_kernels(training);
  settings.inspect = training.enable_eager_debug;
  // Without static shapes nearly every batch would be a recording of its own.
  settings.record =
      device.is_cuda() && training.enable_graph_mode && !training.enable_eager_debug && config.data.pad_to_fixed_length;
  return settings;
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

StepSignature signature_of(const VoiceBatch& batch, bool validation) {
  return {batch.tokens.size(0), batch.tokens.size(1), batch.mel.size(1), validation};
}

FlowNoise draw_noise(const VoiceBatch& batch, uint64_t seed) {
  FlowNoise noise = empty_noise(batch);
  fill_noise(noise, seed);
  return noise;
}

}  // namespace myxtts
