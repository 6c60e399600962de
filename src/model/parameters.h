// All parameters of a model in one flat buffer, and all gradients in another. The optimizer, gradient norm, EMA and
// checkpoint each become one pass over contiguous memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace myxtts {

struct ParameterSpec {
  std::string name;
  std::vector<int64_t> shape;
  double init_std = 0;  // of the initial normal distribution; 0: filled with the mean
  double mean = 0;
  bool in_trunk = false;  // matrix of a transformer stack: one fused product writes its whole gradient
  int64_t first = 0;      // offset in the flat buffer, in elements
  int64_t elements = 0;
};

// Parameters of a model and their offsets in the flat buffer. Matrices come before vectors, so that weight decay is one
// range, and matrices of the transformer stacks come first.
class ParameterLayout {
 public:
  // In elements. Equal alignment makes cuBLAS select the same kernel, and so give the same bits, at any buffer address.
  static constexpr int64_t alignment = 64;

  // Returns the parameter's index.
  size_t add(std::string name, std::vector<int64_t> shape, double init_std, double mean = 0);
  size_t add_to_trunk(std::string name, std::vector<int64_t> shape, double init_std);
  void arrange();  // assigns the offsets; call once, after the last add

  const std::vector<ParameterSpec>& specs() const { return specs_; }
  int64_t elements() const { return elements_; }  // including alignment gaps
  int64_t matrix_elements() const { return matrix_elements_; }
  int64_t trunk_elements() const { return trunk_elements_; }
  int64_t parameters() const;  // number of parameters, without gaps

  // Flat buffer of initial values, a function of the seed only. Gaps are zero.
  at::Tensor initial(uint64_t seed) const;

  // Views into a flat buffer, one per parameter.
  std::vector<at::Tensor> views(const at::Tensor& flat) const;

 private:
  std::vector<ParameterSpec> specs_;
  int64_t elements_ = 0, matrix_elements_ = 0, trunk_elements_ = 0;
};

// Weights that a model computes with. Backward accumulates into views of `gradients`.
struct Weights {
  at::Tensor flat, gradients;
  std::vector<at::Tensor> tensors;
  bool overwrite_trunk_gradients = false;  // fused backward overwrites these gradients instead of accumulating
  // Called by a fused backward, in its own thread, with each gradient that it has finished; may be empty.
  std::function<void(const at::Tensor& gradient)> gradient_ready;

  const at::Tensor& operator[](size_t number) const { return tensors[number]; }
};

// Allocates gradients if `trainable`.
Weights make_weights(const ParameterLayout& layout, const at::Tensor& flat, bool trainable);

// Like loss.backward(), but adds all gradients from autograd in one foreach kernel. Fused kernels have written theirs
// already.
void add_gradients(const at::Tensor& loss, const Weights& weights);

}  // namespace myxtts
