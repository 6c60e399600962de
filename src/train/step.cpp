#include "train/step.h"

#include "base/workers.h"
#include "model/cpu_products.h"
#include "train/device_sum.h"
#include "train/ranks.h"
#include "train/step_inspector.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

namespace myxtts {
namespace {

constexpr int64_t values_per_group = 3;  // gradient norm, skipped in a row, skipped in all

at::Tensor stacked(const std::vector<at::Tensor>& losses) { return at::stack(losses).detach(); }

}  // namespace

TrainingStep::TrainingStep(const Trainable& trainable, const StepSettings& settings)
    : trainable_(trainable), settings_(settings), groups_(trainable.groups()) {
  const bool gpu = settings.device.is_cuda(), half = settings.policy.bfloat16;
  if (settings.policy.fast_products) use_fast_cpu_products();
  if (gpu) stream_ = use_own_stream(settings.device.index());
  for (const ParameterGroup& group : groups_) {
    OptimizerState& state =
        states_.emplace_back(make_optimizer_state(group.layout->initial(settings.seed).to(settings.device)));
    Weights& weights =
        weights_.emplace_back(make_weights(*group.layout, half ? state.master.to(at::kBFloat16) : state.master, true));
    weights.overwrite_trunk_gradients =
        settings.accumulation == 1 && !settings.policy.inspect && trainable.overwrites_gradients(weights);
    ema_.push_back(make_weights(*group.layout, half ? state.ema.to(at::kBFloat16) : state.ema, false));
    learning_rates_.push_back(at::zeros({}, state.master.options()));
  }
  const auto floats = states_.front().master.options();
  const auto losses = static_cast<int64_t>(first_loss(groups_.size())), groups = static_cast<int64_t>(groups_.size());
  readout_.sums = at::zeros({losses}, floats);
  readout_.values = at::zeros({losses + values_per_group * groups}, floats);
  readout_.sent = at::empty_like(readout_.values, at::TensorOptions(at::kCPU).pinned_memory(gpu));
  if (stream_) readout_.arrival = std::make_unique<DeviceEvent>(settings.device.index());
  evaluation_.sums = at::zeros({losses + static_cast<int64_t>(trainable.measures().size())}, floats);
  evaluation_.weight = at::zeros({}, floats);
  const size_t sharing = settings.ranks != nullptr ? static_cast<size_t>(settings.ranks->place().on_cores) : 1,
               cores = std::max<size_t>(1, available_cores() / sharing);
  if (sharing > 1) at::set_num_threads(std::min(at::get_num_threads(), static_cast<int>(cores)));
  if (settings.device_sum != nullptr && settings.accumulation == 1) {
    for (Weights& weights : weights_) {
      GradientBuckets& buckets =
          *buckets_.emplace_back(std::make_unique<GradientBuckets>(*settings.device_sum, weights.gradients));
      weights.gradient_ready = [&buckets](const at::Tensor& gradient) { buckets.ready(gradient); };
    }
  }
  if (!gpu && !settings.policy.inspect && cores > 1 && settings.device_sum == nullptr)
    workers_ = std::make_unique<RowWorkers>(cores);
  if (settings.policy.capture) captured_.capturer = make_graph_capturer(settings.device.index());
}

TrainingStep::~TrainingStep() = default;

size_t TrainingStep::first_loss(size_t group) const {
  size_t first = 0;
  for (size_t i = 0; i < group; ++i) first += groups_[i].losses.size();
  return first;
}

std::vector<std::string> TrainingStep::loss_names() const {
  std::vector<std::string> names;
  for (const ParameterGroup& group : groups_) names.insert(names.end(), group.losses.begin(), group.losses.end());
  return names;
}

std::vector<at::Tensor> TrainingStep::losses(size_t group, const std::vector<Weights>& weights, const TensorMap& batch,
                                             const TensorMap& noise, bool backward) {
  std::vector<at::Tensor> losses;
  const auto add = [&] {
    if (backward) add_gradients(losses.front() / static_cast<double>(settings_.accumulation), weights[group]);
  };
  if (!settings_.policy.inspect) {
    losses = trainable_.losses(group, weights, batch, noise, {});
    add();
    return losses;
  }
  StepInspector inspector;
  inspector.watch([&] {
    losses = trainable_.losses(group, weights, batch, noise, inspector.callback());
    inspector.check("the loss", losses.front());
    add();
    if (backward) StepInspector::check_gradients(*groups_[group].layout, weights[group].gradients);
  });
  return losses;
}

void TrainingStep::add_gradient(size_t group, const TensorMap& batch, const TensorMap& noise) {
  if (add_gradient_of_parts(group, batch, noise)) return;
  if (buckets_.empty()) return add_losses(group, stacked(losses(group, weights_, batch, noise, true)));
  GradientBuckets& buckets = *buckets_[group];
  buckets.begin();
  try {
    add_losses(group, stacked(losses(group, weights_, batch, noise, true)));
    buckets.finish();
  } catch (...) {
    buckets.drop();
    throw;
  }
}

void TrainingStep::add_losses(size_t group, const at::Tensor& losses) {
  const at::NoGradGuard no_gradients;
  readout_.sums.narrow(0, static_cast<int64_t>(first_loss(group)), losses.size(0))
      .add_(losses, 1 / static_cast<double>(settings_.accumulation));
}

bool TrainingStep::add_gradient_of_parts(size_t group, const TensorMap& batch, const TensorMap& noise) {
  if (!workers_) return false;
  const std::vector<Trainable::Part> parts = trainable_.divided(batch, noise, static_cast<int64_t>(workers_->size()));
  if (parts.size() < 2) return false;
  while (of_worker_.size() + 1 < parts.size()) {
    std::vector<Weights>& added = of_worker_.emplace_back();
    for (size_t i = 0; i < groups_.size(); ++i) {
      added.push_back(make_weights(*groups_[i].layout, weights_[i].flat, true));
      added.back().overwrite_trunk_gradients = weights_[i].overwrite_trunk_gradients;
    }
  }
  std::vector<at::Tensor> found(parts.size());
  workers_->run(parts.size(), [&](size_t part) {
    const std::vector<Weights>& weights = part == 0 ? weights_ : of_worker_[part - 1];
    found[part] = stacked(losses(group, weights, parts[part].batch, parts[part].noise, true));
  });
  const at::NoGradGuard no_gradients;
  for (size_t part = 1; part < parts.size(); ++part) {
    const Weights& weights = of_worker_[part - 1][group];
    weights_[group].gradients.add_(weights.gradients);
    const int64_t overwritten = weights.overwrite_trunk_gradients ? groups_[group].layout->trunk_elements() : 0;
    weights.gradients.slice(0, overwritten).zero_();
  }
  add_losses(group, at::stack(found).sum(0));
  return true;
}

void TrainingStep::add_evaluation(const TensorMap& batch, const TensorMap& noise) {
  const at::NoGradGuard no_gradients;
  for (size_t group = 0; group < groups_.size(); ++group) {
    const std::vector<at::Tensor> found = losses(group, ema_, batch, noise, false);
    const auto first = static_cast<int64_t>(first_loss(group)), count = static_cast<int64_t>(found.size());
    evaluation_.sums.narrow(0, first, count).add_(stacked(found) * evaluation_.weight);
  }
  const std::vector<at::Tensor> measured = trainable_.measure(ema_, batch, noise);
  const auto losses = static_cast<int64_t>(first_loss(groups_.size()));
  if (!measured.empty()) {
    evaluation_.sums.slice(0, losses).add_(stacked(measured) * evaluation_.weight);
  }
}

void TrainingStep::apply_gradient(size_t group) {
  const at::NoGradGuard no_gradients;
  if (settings_.device_sum != nullptr && buckets_.empty()) settings_.device_sum->sum(weights_[group].gradients);
  const auto update = settings_.policy.fused && settings_.device.is_cuda() ? update_weights_fused : update_weights;
  OptimizerState& state = states_[group];
  const at::Tensor norm =
      update(groups_[group].optimizer, *groups_[group].layout, learning_rates_[group], weights_[group], state);
  const auto losses = readout_.sums.size(0), at_group = losses + values_per_group * static_cast<int64_t>(group);
  readout_.values.narrow(0, at_group, values_per_group).copy_(at::stack({norm, state.skipped, state.skipped_total}));
  const auto first = static_cast<int64_t>(first_loss(group)),
             count = static_cast<int64_t>(groups_[group].losses.size());
  const at::Tensor sums = readout_.sums.narrow(0, first, count);
  readout_.values.narrow(0, first, count).copy_(sums);
  sums.zero_();
}

void TrainingStep::capture(const std::vector<StepSignature>& shapes) {
  if (!captured_.capturer) return;
  // The longest first: what it leaves in the common memory pool is enough for the others.
  std::vector<StepSignature> longest_first = shapes;
  std::ranges::sort(longest_first, std::greater(), [](const StepSignature& shape) {
    return std::pair(!shape.validation, shape.rows * shape.mel_frames);
  });
  for (const StepSignature& shape : longest_first) captured(shape);
  // NCCL connects with the first sum, which no capture can hold. These gradients are zero.
  if (settings_.device_sum != nullptr && buckets_.empty()) {
    for (const Weights& weights : weights_) settings_.device_sum->sum(weights.gradients);
  }
  for (size_t group = captured_.updates.size(); group < groups_.size(); ++group) {
    captured_.updates.push_back(captured_.capturer->capture([&] { apply_gradient(group); }));
  }
}

// Runs the first shape of a kind uncaptured once, so that cuBLAS and others create their handles and workspaces outside
// of a capture. What it added is taken away again; what an accumulated batch had added stays.
void TrainingStep::warm_up(const std::function<void()>& work) {
  std::vector<at::Tensor> gradients;
  for (const Weights& weights : weights_) gradients.push_back(weights.gradients.clone());
  const at::Tensor sums = readout_.sums.clone(), evaluated = evaluation_.sums.clone();
  work();
  for (size_t i = 0; i < weights_.size(); ++i) weights_[i].gradients.copy_(gradients[i]);
  readout_.sums.copy_(sums);
  evaluation_.sums.copy_(evaluated);
}

TrainingStep::CapturedShape& TrainingStep::captured(const StepSignature& shape) {
  const auto found = captured_.shapes.find(shape);
  if (found != captured_.shapes.end()) return found->second;
  CapturedShape& made = captured_.shapes[shape];
  made.batch = trainable_.example(shape, settings_.device);
  if (settings_.ranks != nullptr) {
    made.batch.rows = settings_.ranks->rows();
    for (const auto& [name, count] : trainable_.counts({})) made.batch.add(name, at::ones({}, count_options()));
  }
  made.noise = trainable_.make_noise(made.batch);
  trainable_.draw_noise(made.noise, seeded_generator(settings_.device, 1), made.batch.rows);
  const size_t graphs = shape.validation ? 1 : groups_.size();
  const auto work = [&](size_t group) {
    shape.validation ? add_evaluation(made.batch, made.noise) : add_gradient(group, made.batch, made.noise);
  };
  const auto same_kind = [&](const auto& other) { return other.first.validation == shape.validation; };
  if (std::ranges::count_if(captured_.shapes, same_kind) == 1) {
    warm_up([&] {
      for (size_t group = 0; group < graphs; ++group) work(group);
    });
  }
  for (size_t group = 0; group < graphs; ++group) {
    made.graphs.push_back(captured_.capturer->capture([&] { work(group); }));
  }
  return made;
}

void TrainingStep::share(TensorMap& batch, std::span<const RowLength> rows, std::span<double> also) {
  Ranks& ranks = *settings_.ranks;
  const Trainable::Counts counts = trainable_.counts(rows);
  std::vector<double> numbers(also.begin(), also.end());
  for (const auto& [name, count] : counts) numbers.push_back(static_cast<double>(count));
  at::Tensor message = at::tensor(numbers, at::kDouble);
  ranks.sum(message);
  const double* summed = message.const_data_ptr<double>();
  std::copy_n(summed, also.size(), also.begin());
  summed += also.size();
  for (const auto& [name, count] : counts)
    batch.add(name, at::full({}, static_cast<int64_t>(*summed++), count_options()));
  batch.rows = ranks.rows();
}

void TrainingStep::begin(double learning_rate) {
  for (size_t group = 0; group < groups_.size(); ++group) {
    learning_rates_[group].fill_(learning_rate * groups_[group].learning_rate_scale);
  }
}

void TrainingStep::add(const TensorMap& batch, uint64_t seed) {
  CapturedShape* shape = nullptr;
  TensorMap noise;
  if (captured_.capturer) {
    shape = &captured(signature_of(batch, false));
    shape->batch.copy_from(batch);
    trainable_.draw_noise(shape->noise, seeded_generator(settings_.device, seed), batch.rows);
  } else {
    noise = trainable_.make_noise(batch);
    trainable_.draw_noise(noise, seeded_generator(settings_.device, seed), batch.rows);
  }
  for (size_t group = 0; group < groups_.size(); ++group) {
    shape != nullptr ? shape->graphs[group]->replay() : add_gradient(group, batch, noise);
    if (updates_early(group)) update_group(group);
  }
}

void TrainingStep::update_group(size_t group) {
  if (settings_.ranks != nullptr && settings_.device_sum == nullptr) settings_.ranks->sum(weights_[group].gradients);
  if (group < captured_.updates.size()) {
    captured_.updates[group]->replay();
  } else {
    apply_gradient(group);
  }
}

void TrainingStep::update() {
  for (size_t group = 0; group < groups_.size(); ++group) {
    if (!updates_early(group)) update_group(group);
  }
}

StepValues TrainingStep::values_from(const at::Tensor& host) const {
  const float* const values = host.const_data_ptr<float>();
  const auto losses = static_cast<size_t>(readout_.sums.size(0));
  StepValues read;
  read.losses.assign(values, values + losses);
  for (size_t group = 0; group < groups_.size(); ++group) {
    const float* const of_group = values + losses + group * values_per_group;
    read.gradient_norm.push_back(of_group[0]);
    read.skipped_in_a_row = std::max<double>(read.skipped_in_a_row, of_group[1]);
    read.skipped_total = std::max<double>(read.skipped_total, of_group[2]);
  }
  return read;
}

void TrainingStep::wait() { readout_.values.cpu(); }

StepValues TrainingStep::values() { return values_from(values_of_all_ranks().cpu()); }

// Norms and counters are the same on every rank already.
at::Tensor TrainingStep::values_of_all_ranks() const {
  if (settings_.ranks == nullptr) return readout_.values;
  at::Tensor values = readout_.values.clone(), losses = values.narrow(0, 0, readout_.sums.size(0));
  settings_.device_sum != nullptr ? settings_.device_sum->sum(losses) : settings_.ranks->sum(losses);
  return values;
}

void TrainingStep::send_values() {
  readout_.sent.copy_(values_of_all_ranks(), true);
  if (readout_.arrival) readout_.arrival->record(stream());
}

bool TrainingStep::values_arrived() const { return !readout_.arrival || readout_.arrival->is_complete(); }

StepValues TrainingStep::sent_values() const {
  if (readout_.arrival) readout_.arrival->wait();
  return values_from(readout_.sent);
}

void TrainingStep::begin_evaluation() {
  const at::NoGradGuard no_gradients;
  for (size_t group = 0; group < groups_.size(); ++group) {
    if (settings_.policy.bfloat16) ema_[group].flat.copy_(states_[group].ema);
  }
  evaluation_.sums.zero_();
  evaluation_.weights = 0;
}

void TrainingStep::evaluate(const TensorMap& batch, uint64_t seed, double weight) {
  evaluation_.weight.fill_(weight);
  evaluation_.weights += weight;
  if (!captured_.capturer) {
    TensorMap noise = trainable_.make_noise(batch);
    trainable_.draw_noise(noise, seeded_generator(settings_.device, seed), batch.rows);
    add_evaluation(batch, noise);
    return;
  }
  CapturedShape& shape = captured(signature_of(batch, true));
  shape.batch.copy_from(batch);
  trainable_.draw_noise(shape.noise, seeded_generator(settings_.device, seed), batch.rows);
  shape.graphs.front()->replay();
}

std::vector<double> TrainingStep::end_evaluation() {
  if (settings_.ranks != nullptr) settings_.ranks->sum(evaluation_.sums);
  const at::Tensor host = (evaluation_.sums / std::max(1.0, evaluation_.weights)).cpu();
  return {host.const_data_ptr<float>(), host.const_data_ptr<float>() + host.numel()};
}

std::vector<std::string> TrainingStep::evaluated_names() const {
  std::vector<std::string> names = loss_names();
  for (std::string& measure : trainable_.measures()) names.push_back(std::move(measure));
  return names;
}

void TrainingStep::reload() {
  const at::NoGradGuard no_gradients;
  for (size_t group = 0; group < groups_.size(); ++group) {
    if (settings_.policy.bfloat16) weights_[group].flat.copy_(states_[group].master);
  }
}

std::vector<Weights> TrainingStep::ema_weights() const {
  std::vector<Weights> weights;
  for (size_t group = 0; group < groups_.size(); ++group) {
    weights.push_back(make_weights(
        *groups_[group].layout, states_[group].ema.to(settings_.policy.bfloat16 ? at::kBFloat16 : at::kFloat), false));
  }
  return weights;
}

StepSignature signature_of(const TensorMap& batch, bool validation) {
  StepSignature signature;
  signature.validation = validation;
  for (const auto& [name, tensor] : batch) {
    if (tensor.dim() == 0) continue;
    signature.rows = std::max(signature.rows, tensor.size(0));  // references are those of some rows alone
    if (name == "tokens") signature.text_length = tensor.size(1);
    if (name == "mel") signature.mel_frames = tensor.size(1);
  }
  return signature;
}

}  // namespace myxtts
