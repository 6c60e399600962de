#include "model/parameters.h"

#include "base/hash.h"
#include "base/workers.h"

#include <functional>
#include <numeric>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/autograd.h>

namespace myxtts {
size_t ParameterLayout::add(std::string name, std::vector<int64_t> shape, double init_std, double mean) {
  const int64_t elements = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  specs_.push_back({std::move(name), std::move(shape), init_std, mean, false, 0, elements});
  return specs_.size() - 1;
}

size_t ParameterLayout::add_to_trunk(std::string name, std::vector<int64_t> shape, double init_std) {
  const size_t index = add(std::move(name), std::move(shape), init_std);
  specs_[index].in_trunk = true;
  return index;
}

void ParameterLayout::arrange() {
  elements_ = 0;
  const auto assign = [&](bool in_trunk, bool matrix) {
    for (ParameterSpec& spec : specs_) {
      if (spec.in_trunk != in_trunk || (spec.shape.size() > 1) != matrix) continue;
      spec.first = elements_;
      elements_ += (spec.elements + alignment - 1) / alignment * alignment;
    }
    return elements_;
  };
  trunk_elements_ = assign(true, true);
  matrix_elements_ = assign(false, true);
  assign(false, false);
}

int64_t ParameterLayout::parameters() const {
  int64_t sum = 0;
  for (const ParameterSpec& spec : specs_) sum += spec.elements;
  return sum;
}

at::Tensor ParameterLayout::initial(uint64_t seed) const {
  at::Tensor flat = at::zeros({elements_}, at::kFloat);
  parallel_for(specs_.size(), available_cores(), [&](size_t i) {
    const ParameterSpec& spec = specs_[i];
    // Seeded by name, so that the initial value does not depend on other parameters.
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(hash_text(spec.name, seed));
    at::Tensor values = flat.narrow(0, spec.first, spec.elements);
    if (spec.init_std > 0) {
      values.normal_(spec.mean, spec.init_std, generator);
    } else {
      values.fill_(spec.mean);
    }
  });
  return flat;
}

std::vector<at::Tensor> ParameterLayout::views(const at::Tensor& flat) const {
  std::vector<at::Tensor> views;
  for (const ParameterSpec& spec : specs_) views.push_back(flat.narrow(0, spec.first, spec.elements).view(spec.shape));
  return views;
}

Weights make_weights(const ParameterLayout& layout, const at::Tensor& flat, bool trainable) {
  Weights weights;
  weights.flat = flat;
  weights.tensors = layout.views(flat);
  if (!trainable) return weights;
  weights.gradients = at::zeros_like(flat);
  const std::vector<at::Tensor> gradients = layout.views(weights.gradients);
  for (size_t i = 0; i < weights.tensors.size(); ++i) {
    weights.tensors[i] = weights.tensors[i].detach().requires_grad_();
    weights.tensors[i].mutable_grad() = gradients[i];
  }
  return weights;
}

void add_gradients(const at::Tensor& loss, const Weights& weights) {
  const std::vector<at::Tensor> computed =
      torch::autograd::grad({loss}, weights.tensors, {}, std::nullopt, /*create_graph=*/false, /*allow_unused=*/true);
  std::vector<at::Tensor> sums, parts;
  for (size_t i = 0; i < computed.size(); ++i) {
    if (!computed[i].defined()) continue;
    sums.push_back(weights.tensors[i].grad());
    parts.push_back(computed[i]);
  }
  at::_foreach_add_(sums, parts);
}

}  // namespace myxtts
