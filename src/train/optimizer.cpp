#include "train/optimizer.h"

#include "model/torch_stream.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceGuard.h>

namespace myxtts {

OptimizerState make_optimizer_state(const at::Tensor& initial) {
  OptimizerState state;
  state.master = initial;
  state.ema = initial.clone();
  state.first_moment = at::zeros_like(initial);
  state.second_moment = at::zeros_like(initial);
  state.updates = at::zeros({}, initial.options());
  state.skipped = at::zeros({}, initial.options());
  state.skipped_total = at::zeros({}, initial.options());
  return state;
}

at::Tensor update_weights(const OptimizerSettings& settings, const ParameterLayout& layout,
                          const at::Tensor& learning_rate, Weights& weights, OptimizerState& state) {
  const at::NoGradGuard no_gradients;
  const at::Tensor gradients = weights.gradients.to(at::kFloat);
  at::Tensor norm = gradients.norm();
  const at::Tensor finite = at::isfinite(norm);
  const at::Tensor done = finite.to(at::kFloat);
  const at::Tensor clipped = at::where(finite, gradients * (settings.clip_norm / (norm + 1e-6)).clamp_max(1), 0.0);
  state.updates.add_(done);
  state.skipped_total.add_(1 - done);
  state.skipped.add_(1).mul_(1 - done);

  state.first_moment.lerp_(clipped, done * (1 - settings.beta1));
  state.second_moment.lerp_(clipped.square(), done * (1 - settings.beta2));
  const auto correction = [&](double decay) { return 1 - at::pow(decay, state.updates.clamp_min(1)); };
  const at::Tensor rate = learning_rate * done;
  state.master.narrow(0, 0, layout.matrix_elements()).mul_(1 - rate * settings.weight_decay);
  const at::Tensor denominator = (state.second_moment / correction(settings.beta2)).sqrt_().add_(settings.eps);
  state.master.sub_(rate / correction(settings.beta1) * state.first_moment / denominator);
  const at::Tensor decay = ((1 + state.updates) / (10 + state.updates)).clamp_max(settings.ema_decay);
  at::Tensor follows = 1 - decay;
  if (settings.ema_decay >= EmaSchedule::slow_decay) {
    const at::Tensor due = state.updates.remainder(EmaSchedule::interval) == 0;
    const at::Tensor in_interval = at::where(due, 1 - decay.pow(EmaSchedule::interval), 0.0);
    follows = at::where(state.updates <= EmaSchedule::warm_up, follows, in_interval);
  }
  state.ema.lerp_(state.master, done * follows);
  if (weights.flat.scalar_type() != at::kFloat) weights.flat.copy_(state.master);
  weights.gradients.zero_();
  return norm;
}

at::Tensor update_weights_fused(const OptimizerSettings& settings, const ParameterLayout& layout,
                                const at::Tensor& learning_rate, Weights& weights, OptimizerState& state) {
  const c10::DeviceGuard guard(state.master.device());
  at::Tensor norm = at::empty({}, state.master.options());
  const auto bytes = static_cast<int64_t>(update_scratch_bytes());
  at::Tensor scratch = at::empty({bytes}, state.master.options().dtype(at::kByte));
  UpdateProblem problem;
  problem.settings = settings;
  problem.sizes = {layout.elements(), layout.matrix_elements(),
                   weights.overwrite_trunk_gradients ? layout.trunk_elements() : 0};
  problem.half = weights.flat.scalar_type() != at::kFloat;
  problem.gradients = weights.gradients.mutable_data_ptr();
  problem.weights = problem.half ? weights.flat.mutable_data_ptr() : nullptr;
  problem.state.master = state.master.mutable_data_ptr<float>();
  problem.state.ema = state.ema.mutable_data_ptr<float>();
  problem.state.first_moment = state.first_moment.mutable_data_ptr<float>();
  problem.state.second_moment = state.second_moment.mutable_data_ptr<float>();
  problem.scalars.learning_rate = learning_rate.const_data_ptr<float>();
  problem.scalars.updates = state.updates.mutable_data_ptr<float>();
  problem.scalars.skipped = state.skipped.mutable_data_ptr<float>();
  problem.scalars.skipped_total = state.skipped_total.mutable_data_ptr<float>();
  problem.scalars.norm = norm.mutable_data_ptr<float>();
  update_on_gpu(problem, scratch.mutable_data_ptr(), current_stream(state.master.get_device()));
  return norm;
}

double scheduled_learning_rate(double peak, int64_t step, int64_t warmup, int64_t total) {
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
  const double way = static_cast<double>(step - warmup) / static_cast<double>(std::max<int64_t>(1, total - warmup));
  constexpr double end = 0.1;
  return peak * (end + (1 - end) * 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, way))));
}

}  // namespace myxtts
