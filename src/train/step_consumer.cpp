#include "train/step_consumer.h"

#include "train/describe_voice.h"
#include "train/step.h"

#include <optional>
#include <set>

#include <ATen/ATen.h>

namespace myxtts {
namespace {

at::Device device_of(const Mode& mode) {
  return mode.model_device < 0 ? at::Device(at::kCPU)
                               : at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(mode.model_device));
}

std::vector<StepSignature> declared_by(const Config& config, const BatchPlan& plan) {
  std::vector<StepSignature> declared;
  if (!config.data.pad_to_fixed_length) return declared;
  for (const Shape& shape : plan.shapes()) {
    declared.push_back({shape.batch_size, shape.text_length, shape.mel_frames, false});
  }
  return declared;
}

}  // namespace

struct StepConsumer::State {
  State(const Config& config_, const Corpus& corpus_, const BatchPlan& plan, const Mode& mode)
      : config(config_),
        corpus(corpus_),
        device(device_of(mode)),
        voice(describe_voice(config, corpus).spec(), uses_fused_kernels(config.training)),
        step(voice, voice.layout().initial(static_cast<uint64_t>(config.training.seed)), step_settings(config, device)),
        monitor(declared_by(config, plan)) {
    step.record(declared_by(config, plan));
    if (device.is_cuda()) busy.emplace(device.index());
  }

  void take(const LoadedBatch& batch) {
    const VoiceBatch wrapped = wrap_batch(batch, corpus, device, !config.data.pad_to_fixed_length);
    const StepSignature signature = signature_of(wrapped, false);
    shapes.insert(signature);
    if (auto changed = monitor.see(signature)) changes.push_back(*std::move(changed));
    if (busy) busy->begin(step.stream());
    step.add(wrapped, ++seed);
    step.update(config.training.learning_rate);
    if (busy) busy->end(step.stream());
    step.figures();  // waits
  }

  const Config& config;
  const Corpus& corpus;
  const at::Device device;
  const Voice voice;
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
  consumer.consume = [state](const LoadedBatch& batch) { state->take(batch); };
  consumer.stream = state->step.stream();
  if (state->busy) consumer.take_busy_ms = [state] { return state->busy->take().busy_ms; };
  return consumer;
}

int64_t StepConsumer::captures() const {
  return state_->step.recordings() > 0 ? state_->step.recordings() : state_->monitor.captures();
}
int64_t StepConsumer::retraces() const { return state_->monitor.retraces(); }
std::vector<std::string> StepConsumer::changes() const { return state_->changes; }
std::vector<StepSignature> StepConsumer::shapes() const { return {state_->shapes.begin(), state_->shapes.end()}; }

}  // namespace myxtts
