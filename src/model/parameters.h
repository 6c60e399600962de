// All weights of a model in one flat buffer, and all gradients in another: the optimiser, the gradient's norm, the
// average and a checkpoint are each one pass over plain memory, whatever the model looks like.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace myxtts {

struct ParameterSpec {
  std::string name;
  std::vector<int64_t> shape;
  double deviation = 0;  // of the normal distribution it starts with
  double mean = 0;
  int64_t first = 0;  // element of the flat buffer
  int64_t elements = 0;
};

// What a model is made of, in the order in which it lies in memory.
class ParameterLayout {
 public:
  // Returns the parameter's number.
  size_t add(std::string name, std::vector<int64_t> shape, double deviation, double mean = 0);

  const std::vector<ParameterSpec>& specs() const { return specs_; }
  int64_t elements() const { return elements_; }  // with the gaps that keep each parameter aligned
  int64_t parameters() const;                     // without

  // A flat buffer with the values that training starts from: the same for the same seed. Gaps are zero.
  at::Tensor initial(uint64_t seed) const;

  // Views into a flat buffer, one a parameter.
  std::vector<at::Tensor> views(const at::Tensor& flat) const;

 private:
  std::vector<ParameterSpec> specs_;
  int64_t elements_ = 0;
};

// The weights that a model computes with. Each has its gradient in `gradients`, where backward adds to it.
struct Weights {
  at::Tensor flat, gradients;
  std::vector<at::Tensor> tensors;

  const at::Tensor& operator[](size_t number) const { return tensors[number]; }
};

// With room for gradients where `trainable`.
Weights make_weights(const ParameterLayout& layout, const at::Tensor& flat, bool trainable);

}  // namespace myxtts
