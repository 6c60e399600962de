#include "synth/export/graph.h"

#include <ATen/ATen.h>

namespace myxtts {

OnnxValue OnnxGraph::node(const std::string& op, const std::vector<OnnxValue>& inputs,
                          const OnnxAttributes& attributes) {
  return nodes(1, op, inputs, attributes).front();
}

OnnxValue OnnxGraph::constant(const at::Tensor& values) { return store(values); }

OnnxValue OnnxGraph::scalar(double value) {
  const auto found = scalars_.find(value);
  if (found != scalars_.end()) return found->second;
  return scalars_[value] = store(at::scalar_tensor(value, at::kFloat));
}

OnnxValue OnnxGraph::integer(int64_t value) { return store(at::scalar_tensor(value, at::kLong)); }

OnnxValue OnnxGraph::integers(const std::vector<int64_t>& values) { return store(at::tensor(values, at::kLong)); }

OnnxValue OnnxGraph::weight(const at::Tensor& values, bool of_block) {
  const auto found = weights_.find(values.const_data_ptr());
  if (found != weights_.end()) return found->second;
  OnnxValue& stored = weights_[values.const_data_ptr()];
  constexpr int64_t float_type = 1;  // TensorProto.FLOAT
  if (precision_ == WeightPrecision::float32) {
    stored = store(values);
  } else if (precision_ == WeightPrecision::float16 || !of_block) {
    stored = node("Cast", {store(values.to(at::kHalf))}, {{"to", float_type}});
  } else {
    std::vector<int64_t> others(static_cast<size_t>(values.dim() - 1));
    for (size_t i = 0; i < others.size(); ++i) others[i] = static_cast<int64_t>(i) + 1;
    const at::Tensor scale = (values.abs().amax(others, /*keepdim=*/true) / 127).clamp_min(1e-12);
    const OnnxValue integers = store((values / scale).round().to(at::kChar));
    // Plain operators on constants: a runtime computes them once, when it loads the model.
    stored = node("Cast", {integers}, {{"to", float_type}}) * store(scale);
  }
  return stored;
}

OnnxValue operator+(const OnnxValue& a, const OnnxValue& b) { return a.graph->node("Add", {a, b}); }
OnnxValue operator-(const OnnxValue& a, const OnnxValue& b) { return a.graph->node("Sub", {a, b}); }
OnnxValue operator*(const OnnxValue& a, const OnnxValue& b) { return a.graph->node("Mul", {a, b}); }
OnnxValue operator/(const OnnxValue& a, const OnnxValue& b) { return a.graph->node("Div", {a, b}); }
OnnxValue operator+(const OnnxValue& a, double b) { return a + a.graph->scalar(b); }
OnnxValue operator*(const OnnxValue& a, double b) { return a * a.graph->scalar(b); }

}  // namespace myxtts
