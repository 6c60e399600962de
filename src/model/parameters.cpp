#include "model/parameters.h"

#include "base/hash.h"

#include <functional>
#include <numeric>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

namespace myxtts {
namespace {

// Each parameter begins on a cache line: then a matrix product takes the same path, and gives the same bits, wherever
// the buffer lies.
constexpr int64_t alignment = 64;

}  // namespace

size_t ParameterLayout::add(std::string name, std::vector<int64_t> shape, double deviation, double mean) {
  ParameterSpec spec{std::move(name), std::move(shape), deviation, mean, elements_, 1};
  spec.elements = std::accumulate(spec.shape.begin(), spec.shape.end(), int64_t{1}, std::multiplies<>());
  elements_ += (spec.elements + alignment - 1) / alignment * alignment;
  specs_.push_back(std::move(spec));
  return specs_.size() - 1;
}

int64_t ParameterLayout::parameters() const {
  int64_t sum = 0;
  for (const ParameterSpec& spec : specs_) sum += spec.elements;
  return sum;
}

at::Tensor ParameterLayout::initial(uint64_t seed) const {
  at::Tensor flat = at::zeros({elements_}, at::kFloat);
  for (const ParameterSpec& spec : specs_) {
    // By name, so that a parameter starts the same whatever else the model has.
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(hash_text(spec.name, seed));
    at::Tensor values = flat.narrow(0, spec.first, spec.elements);
    if (spec.deviation > 0) {
      values.normal_(spec.mean, spec.deviation, generator);
    } else {
      values.fill_(spec.mean);
    }
  }
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

}  // namespace myxtts
