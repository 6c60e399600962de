#include "synth/export/layers.h"

#include "base/error.h"
#include "model/size.h"

#include <cmath>
#include <numbers>

#include <ATen/ATen.h>

namespace myxtts {

NamedWeights::NamedWeights(const ParameterLayout& layout, const at::Tensor& flat) {
  const std::vector<at::Tensor> views = layout.views(flat);
  for (size_t i = 0; i < views.size(); ++i) tensors_[layout.specs()[i].name] = views[i];
}

const at::Tensor& NamedWeights::operator[](const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) fail("export", "the model has no weight '{}'", name);
  return found->second;
}

OnnxValue reshape(const OnnxValue& x, const std::vector<int64_t>& dims) {
  return x.graph->node("Reshape", {x, x.graph->integers(dims)});
}

OnnxValue transpose(const OnnxValue& x, const std::vector<int64_t>& order) {
  return x.graph->node("Transpose", {x}, {{"perm", order}});
}

OnnxValue squeeze(const OnnxValue& x, int64_t axis) { return x.graph->node("Squeeze", {x, x.graph->integers({axis})}); }

OnnxValue unsqueeze(const OnnxValue& x, int64_t axis) {
  return x.graph->node("Unsqueeze", {x, x.graph->integers({axis})});
}

std::vector<OnnxValue> split(const OnnxValue& x, const std::vector<int64_t>& sizes, int64_t axis) {
  return x.graph->nodes(sizes.size(), "Split", {x, x.graph->integers(sizes)}, {{"axis", axis}});
}

OnnxValue concat(const std::vector<OnnxValue>& parts, int64_t axis) {
  return parts.front().graph->node("Concat", parts, {{"axis", axis}});
}

OnnxValue silu(const OnnxValue& x) { return x * x.graph->node("Sigmoid", {x}); }

OnnxValue gelu(const OnnxValue& x) {
  const OnnxValue cube = x.graph->node("Pow", {x, x.graph->scalar(3)});
  const OnnxValue inner = (x + cube * 0.044715) * std::sqrt(2 / std::numbers::pi);
  return x * 0.5 * (x.graph->node("Tanh", {inner}) + 1.0);
}

OnnxValue rms_norm(const OnnxValue& x) {
  constexpr double eps = 1e-6;
  const OnnxValue square = x.graph->node("Pow", {x, x.graph->scalar(2)});
  const OnnxValue mean = x.graph->node("ReduceMean", {square}, {{"axes", std::vector<int64_t>{-1}}, {"keepdims", 1}});
  return x / x.graph->node("Sqrt", {mean + eps});
}

OnnxValue rms_norm(const OnnxValue& x, const at::Tensor& weight) { return rms_norm(x) * x.graph->constant(weight); }

OnnxValue linear(const OnnxValue& x, const at::Tensor& weight, const at::Tensor& bias) {
  std::vector<OnnxValue> inputs = {x, x.graph->weight(weight, !bias.defined())};
  if (bias.defined()) inputs.push_back(x.graph->constant(bias));
  return x.graph->node("Gemm", inputs, {{"transB", 1}});
}

namespace {

// `x` [positions, width]; `inputs`: weight [outputs, width / groups, kernel], and perhaps a bias.
OnnxValue over_positions(const OnnxValue& x, const std::vector<OnnxValue>& inputs, int64_t kernel, int64_t groups) {
  std::vector<OnnxValue> all = {unsqueeze(transpose(x, {1, 0}), 0)};
  all.insert(all.end(), inputs.begin(), inputs.end());
  const OnnxValue y = x.graph->node(
      "Conv", all,
      {{"group", groups}, {"pads", std::vector{kernel / 2, kernel / 2}}, {"kernel_shape", std::vector{kernel}}});
  return transpose(squeeze(y, 0), {1, 0});
}

}  // namespace

OnnxValue convolve(const OnnxValue& x, int64_t width, const at::Tensor& weight, const at::Tensor& bias) {
  const int64_t kernel = weight.size(1) / width;
  if (kernel == 1) return linear(x, weight, bias);
  // Stored as it is, so that it is stored once; a runtime brings it into shape when it loads the model.
  const OnnxValue taps =
      transpose(reshape(x.graph->weight(weight, !bias.defined()), {weight.size(0), kernel, width}), {0, 2, 1});
  std::vector<OnnxValue> inputs = {taps};
  if (bias.defined()) inputs.push_back(x.graph->constant(bias));
  return over_positions(x, inputs, kernel, 1);
}

OnnxValue convolve_depthwise(const OnnxValue& x, const at::Tensor& weight) {
  const int64_t kernel = weight.size(0), width = weight.size(1);
  return x + over_positions(x, {x.graph->constant(weight.t().unsqueeze(1))}, kernel, width);
}

OnnxRotary rotary(const OnnxValue& positions) {
  OnnxGraph& graph = *positions.graph;
  const at::Tensor rates = at::exp(at::arange(head_width / 2, at::kFloat) * (-std::log(10000.0) * 2 / head_width));
  constexpr int64_t float_type = 1;
  const OnnxValue position =
      graph.node("Cast", {graph.node("Range", {graph.integer(0), positions, graph.integer(1)})}, {{"to", float_type}});
  const OnnxValue angles = unsqueeze(position, 1) * graph.constant(rates);
  return {graph.node("Cos", {angles}), graph.node("Sin", {angles})};
}

OnnxValue attend(const OnnxValue& x, int64_t width, const at::Tensor& weight_in, const at::Tensor& weight_out,
                 const OnnxRotary& rotary) {
  const int64_t heads = width / head_width, half = head_width / 2;
  const OnnxValue qkv = transpose(reshape(linear(x, weight_in), {0, 3 * heads, head_width}), {1, 0, 2});
  const std::vector<OnnxValue> parts = split(qkv, {2 * heads, heads}, 0);  // queries and keys; values
  const std::vector<OnnxValue> halves = split(parts[0], {half, half}, 2);
  const OnnxValue rotated = concat(
      {halves[0] * rotary.cosines - halves[1] * rotary.sines, halves[1] * rotary.cosines + halves[0] * rotary.sines},
      2);
  const std::vector<OnnxValue> both = split(rotated, {heads, heads}, 0);
  const OnnxValue scores = x.graph->node("MatMul", {both[0], transpose(both[1], {0, 2, 1})}) *
                           (1 / std::sqrt(static_cast<double>(head_width)));
  const OnnxValue output = x.graph->node("MatMul", {x.graph->node("Softmax", {scores}, {{"axis", -1}}), parts[1]});
  return linear(reshape(transpose(output, {1, 0, 2}), {0, width}), weight_out);
}

}  // namespace myxtts
