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
  bool in_trunk = false;  // a matrix of a trunk: where that is fused, one product makes its whole gradient
  int64_t first = 0;      // element of the flat buffer
  int64_t elements = 0;
};

// What a model is made of. In memory matrices come before vectors: weight decay is for matrices, so it too is one pass.
// Those of the trunks come first of all.
class ParameterLayout {
 public:
  // Returns the parameter's number.
  size_t add(std::string name, std::vector<int64_t> shape, double deviation, double mean = 0);
  size_t add_to_trunk(std::string name, std::vector<int64_t> shape, double deviation);
  void arrange();  // gives each its place, once all are added

  const std::vector<ParameterSpec>& specs() const { return specs_; }
  int64_t elements() const { return elements_; }  // with the gaps that keep each parameter aligned
  int64_t matrix_elements() const { return matrix_elements_; }
  int64_t trunk_elements() const { return trunk_elements_; }
  int64_t parameters() const;  // without gaps

  // A flat buffer with the values that training starts from: the same for the same seed. Gaps are zero.
  at::Tensor initial(uint64_t seed) const;

  // Views into a flat buffer, one a parameter.
  std::vector<at::Tensor> views(const at::Tensor& flat) const;

 private:
  std::vector<ParameterSpec> specs_;
  int64_t elements_ = 0, matrix_elements_ = 0, trunk_elements_ = 0;
};

// The weights that a model computes with. Each has its gradient in `gradients`, where backward adds to it.
struct Weights {
  at::Tensor flat, gradients;
  std::vector<at::Tensor> tensors;
  bool fresh_trunks = false;  // backward writes the gradients of fused trunks' matrices, whatever was there

  const at::Tensor& operator[](size_t number) const { return tensors[number]; }
};

// With room for gradients where `trainable`.
Weights make_weights(const ParameterLayout& layout, const at::Tensor& flat, bool trainable);

// As loss.backward() does, but what libtorch finds for many small weights is added to their gradients all at once. What
// fused kernels add by themselves is there already.
void add_gradients(const at::Tensor& loss, const Weights& weights);

}  // namespace myxtts
