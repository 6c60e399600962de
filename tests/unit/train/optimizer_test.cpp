#include "train/optimizer.h"

#include "device/device.h"

#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace myxtts {
namespace {

ParameterLayout two_parameters() {
  ParameterLayout layout;
  layout.add("vector", {3}, 0, 1);
  layout.add("matrix", {2, 2}, 1);
  layout.arrange();
  return layout;
}

struct Example {
  Example()
      : layout(two_parameters()),
        state(make_optimizer_state(layout.initial(1))),
        weights(make_weights(layout, state.master, true)) {}

  void set_gradient(float value) { weights.gradients.fill_(value); }
  at::Tensor update(double rate = 0.1) { return update_weights(settings, layout, at::full({}, rate), weights, state); }

  ParameterLayout layout;
  OptimizerSettings settings;
  OptimizerState state;
  Weights weights;
};

// AdamW, written down once more for one number.
double by_hand(double weight, const std::vector<double>& gradients, double rate, double decay,
               const OptimizerSettings& s) {
  double m = 0, v = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    m = s.beta1 * m + (1 - s.beta1) * gradients[i];
    v = s.beta2 * v + (1 - s.beta2) * gradients[i] * gradients[i];
    const auto n = static_cast<double>(i + 1);
    weight -= rate * decay * weight;
    weight -= rate * (m / (1 - std::pow(s.beta1, n))) / (std::sqrt(v / (1 - std::pow(s.beta2, n))) + s.eps);
  }
  return weight;
}

TEST(Optimizer, does_what_adamw_says_with_decay_for_matrices_alone) {
  Example example;
  example.settings.clip_norm = 1e9;
  const std::vector<at::Tensor> before = example.layout.views(example.state.master.clone());
  const std::vector<double> gradients = {0.5, -0.25, 2.0};
  for (const double gradient : gradients) {
    example.set_gradient(static_cast<float>(gradient));
    example.update();
  }
  const std::vector<at::Tensor> after = example.layout.views(example.state.master);
  EXPECT_NEAR(after[0][1].item<double>(), by_hand(before[0][1].item<double>(), gradients, 0.1, 0, example.settings),
              1e-5);
  EXPECT_NEAR(after[1][0][1].item<double>(),
              by_hand(before[1][0][1].item<double>(), gradients, 0.1, 0.01, example.settings), 1e-5);
  EXPECT_EQ(example.weights.gradients.abs().max().item<float>(), 0);
}

TEST(Optimizer, clips_a_large_gradient_and_reports_its_norm) {
  Example example;
  example.settings.clip_norm = 1;
  example.set_gradient(100);
  const double norm = 100 * std::sqrt(static_cast<double>(example.layout.elements()));
  EXPECT_NEAR(example.update().item<double>(), norm, norm * 1e-5);
  EXPECT_NEAR(example.state.first_moment.norm().item<double>(), (1 - example.settings.beta1) * 1, 1e-5);
}

TEST(Optimizer, a_gradient_that_is_not_finite_changes_nothing_but_the_counters) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Example example;
    example.set_gradient(0.5);
    example.update();
    const OptimizerState before = {example.state.master.clone(),
                                   example.state.ema.clone(),
                                   example.state.first_moment.clone(),
                                   example.state.second_moment.clone(),
                                   example.state.updates.clone(),
                                   {},
                                   {}};
    example.weights.gradients[1] = bad;
    example.update();
    EXPECT_TRUE(example.state.master.equal(before.master));
    EXPECT_TRUE(example.state.ema.equal(before.ema));
    EXPECT_TRUE(example.state.first_moment.equal(before.first_moment));
    EXPECT_TRUE(example.state.second_moment.equal(before.second_moment));
    EXPECT_TRUE(example.state.updates.equal(before.updates));
    EXPECT_EQ(example.state.skipped.item<float>(), 1);
    EXPECT_EQ(example.weights.gradients.abs().max().item<float>(), 0);
    example.set_gradient(0.5);
    example.update();
    EXPECT_EQ(example.state.skipped.item<float>(), 0);
    EXPECT_EQ(example.state.skipped_total.item<float>(), 1);
  }
}

// The EMA of one weight over updates that move it, and what it would be if it followed each of them.
struct EmaExample {
  double found, each_update;
  int touched_late;  // updates behind the 64th that changed it
};

EmaExample ema_over(int updates, double decay) {
  Example example;
  example.settings.ema_decay = decay;
  double each_update = example.state.ema[0].item<double>();
  int touched_late = 0;
  for (int n = 1; n <= updates; ++n) {
    example.set_gradient(std::sin(static_cast<float>(n) / 20));
    const auto before = example.state.ema[0].item<float>();
    example.update(0.01);
    const double rest = 1 - std::min(decay, (1 + static_cast<double>(n)) / (10 + static_cast<double>(n)));
    each_update += rest * (example.state.master[0].item<double>() - each_update);
    if (n > 64 && example.state.ema[0].item<float>() != before) ++touched_late;
  }
  return {example.state.ema[0].item<double>(), each_update, touched_late};
}

TEST(Optimizer, a_slow_ema_follows_every_eighth_update_after_its_warm_up) {
  const EmaExample warming_up = ema_over(64, 0.999);
  EXPECT_NEAR(warming_up.found, warming_up.each_update, 1e-5);
  const EmaExample slow = ema_over(640, 0.999);
  EXPECT_EQ(slow.touched_late, (640 - 64) / 8);
  EXPECT_NEAR(slow.found, slow.each_update, 0.03);  // the way of weights in three updates
  const EmaExample quick = ema_over(200, 0.9);
  EXPECT_EQ(quick.touched_late, 200 - 64);
  EXPECT_NEAR(quick.found, quick.each_update, 1e-5);
}

TEST(Schedule, rises_then_falls_to_a_tenth) {
  EXPECT_NEAR(scheduled_learning_rate(1, 0, 10, 100), 0.1, 1e-9);
  EXPECT_NEAR(scheduled_learning_rate(1, 9, 10, 100), 1, 1e-9);
  EXPECT_NEAR(scheduled_learning_rate(1, 100, 10, 100), 0.1, 1e-9);
  for (int64_t step = 10; step < 100; ++step) {
    EXPECT_LE(scheduled_learning_rate(1, step + 1, 10, 100), scheduled_learning_rate(1, step, 10, 100));
  }
  EXPECT_NEAR(scheduled_learning_rate(1, 0, 0, 1), 1, 1e-9);
}

TEST(OptimizerGpu, fused_does_what_plain_operations_do) {
  if (device_count() == 0 || !at::globalContext().hasCUDA()) GTEST_SKIP() << "no GPU";
  ParameterLayout layout;
  layout.add("vector", {1000}, 0, 1);
  layout.add("matrix", {300, 500}, 1);
  layout.add_to_trunk("trunk", {100, 64}, 1);
  layout.arrange();
  const OptimizerSettings settings;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    struct Side {
      OptimizerState state;
      Weights weights;
    };
    const auto make = [&] {
      Side side{make_optimizer_state(layout.initial(1).cuda()), {}};
      side.state.updates.fill_(58);  // so that the EMA's schedule changes on the way
      side.weights = make_weights(layout, type == at::kFloat ? side.state.master : side.state.master.to(type), true);
      return side;
    };
    Side plain = make(), fused = make();
    fused.weights.overwrite_trunk_gradients = true;
    const at::Tensor rate = at::full({}, 1e-2, plain.state.master.options());
    for (int step = 0; step < 20; ++step) {
      at::Tensor gradient = at::randn({layout.elements()}, plain.state.master.options()) * (step % 3 == 0 ? 1e-3 : 1.0);
      if (step == 7) gradient[layout.trunk_elements() + 17] = std::numeric_limits<float>::quiet_NaN();
      if (step == 8) gradient[layout.trunk_elements() + 1] = std::numeric_limits<float>::infinity();
      for (Side* side : {&plain, &fused}) side->weights.gradients.copy_(gradient);
      const at::Tensor before = fused.state.master.clone();
      const at::Tensor expected = update_weights(settings, layout, rate, plain.weights, plain.state);
      const at::Tensor norm = update_weights_fused(settings, layout, rate, fused.weights, fused.state);
      const bool skipped = step == 7 || step == 8;
      if (!skipped) {
        EXPECT_NEAR(norm.item<double>() / expected.item<double>(), 1, 1e-5);
      }
      EXPECT_EQ(fused.state.master.equal(before), skipped);
      const int64_t trunk = layout.trunk_elements();
      EXPECT_GT(fused.weights.gradients.narrow(0, 0, trunk).abs().max().item<float>(), 0);
      EXPECT_EQ(fused.weights.gradients.narrow(0, trunk, layout.elements() - trunk).abs().max().item<float>(), 0);
    }
    const auto near = [](const at::Tensor& a, const at::Tensor& b) {
      return (a.to(at::kFloat) - b.to(at::kFloat)).norm().item<double>() / b.to(at::kFloat).norm().item<double>();
    };
    EXPECT_LT(near(fused.state.master, plain.state.master), 1e-6);
    EXPECT_LT(near(fused.state.ema, plain.state.ema), 1e-6);
    EXPECT_LT(near(fused.state.first_moment, plain.state.first_moment), 1e-5);
    EXPECT_LT(near(fused.state.second_moment, plain.state.second_moment), 1e-5);
    EXPECT_LT(near(fused.weights.flat, plain.weights.flat), type == at::kFloat ? 1e-6 : 1e-4);
    EXPECT_EQ(fused.state.updates.item<float>(), 58 + 18);
    EXPECT_EQ(fused.state.skipped_total.item<float>(), 2);
    EXPECT_EQ(fused.state.skipped.item<float>(), 0);
  }
}

}  // namespace
}  // namespace myxtts
