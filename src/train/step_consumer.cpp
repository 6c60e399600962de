#include "train/step_consumer.h"

#include "model/torch_device.h"
#include "train/describe_voice.h"
#include "train/fit_settings.h"
#include "train/step.h"
#include "train/voice_trainable.h"

#include <optional>
#include <set>

#include <ATen/ATen.h>

namespace myxtts {
namespace {

std::vector<StepSignature> declared_by(const Config& config, const BatchPlan& plan) {
  std::vector<StepSignature> declared;
  if (!config.data.pad_to_fixed_length) return declared;
  for (const Shape& shape : plan.shapes()) {
    declared.push_back({shape.batch_size, shape.text_length, shape.mel_frames, false});
  }
  return declared;
}

StepSettings settings_of(const Config& config, at::Device device) {
  StepSettings settings;
  settings.device = device;
  settings.policy = step_policy(config, device.is_cuda());
  settings.seed = static_cast<uint64_t>(config.training.seed);
  return settings;
}

// Batches that are diagnosed have the arrays of a voice without conditions.
VoiceDescription one_speaker(VoiceDescription voice) {
  voice.speakers.clear(), voice.languages.clear();
  return voice;
}

}  // namespace

struct StepConsumer::State {
  State(const Config& config_, const Corpus& corpus, const BatchPlan& plan, const Mode& mode)
      : config(fit_settings(config_, corpus.index.summary().hours())),
        device(torch_device(mode.model_device)),
        trainable(one_speaker(describe_voice(config, corpus)), {}, step_policy(config, device.is_cuda()).fused),
        step(trainable, settings_of(config, device)),
        monitor(declared_by(config, plan)) {
    step.capture(declared_by(config, plan));
    if (device.is_cuda()) busy.emplace(device.index());
  }

  void take(const Batch& batch) {
    const TensorMap tensors =
        config.data.pad_to_fixed_length ? tensors_of(batch) : tensors_of(batch, longest_row(batch));
    const StepSignature signature = signature_of(tensors, false);
    shapes.insert(signature);
    if (auto changed = monitor.see(signature)) changes.push_back(*std::move(changed));
    if (busy) busy->begin(step.stream());
    step.begin(config.training.learning_rate);
    step.add(tensors, ++seed);
    step.update();
    if (busy) busy->end(step.stream());
    step.values();  // waits
  }

  const Config config;
  const at::Device device;
  const VoiceTrainable trainable;
  TrainingStep step;
  RetraceMonitor monitor;
  std::optional<BusyClock> busy;
  std::set<StepSignature> shapes;
  std::vector<std::string> changes;
  uint64_t seed = 0;
};

StepConsumer::StepConsumer(const Config& config, const Corpus& corpus, const BatchPlan& plan, const Mode& mode)
    : state_(std::make_unique<State>(config, corpus, plan, mode)) {}

StepConsumer::~StepConsumer() = default;

Consumer StepConsumer::consumer() {
  Consumer consumer;
  State* const state = state_.get();
  consumer.name = fmt::format("the {} model on {}", state->config.model.size,
                              state->device.is_cpu() ? "the CPU" : device_name(state->device.index()));
  consumer.consume = [state](const Batch& batch) { state->take(batch); };
  consumer.stream = state->step.stream();
  if (state->busy) consumer.take_busy_ms = [state] { return state->busy->take().busy_ms; };
  return consumer;
}

int64_t StepConsumer::captures() const {
  return state_->step.captures() > 0 ? state_->step.captures() : state_->monitor.captures();
}
int64_t StepConsumer::retraces() const { return state_->monitor.retraces(); }
std::vector<std::string> StepConsumer::changes() const { return state_->changes; }
std::vector<StepSignature> StepConsumer::shapes() const { return {state_->shapes.begin(), state_->shapes.end()}; }

}  // namespace myxtts
