// Layers of voices and vocoders as ONNX operators: what model/blocks.h computes, for one row without padding. Values
// are [positions, width].
#pragma once

#include "model/parameters.h"
#include "synth/export/graph.h"

#include <map>
#include <string>
#include <vector>

namespace myxtts {

// Weights by the names that checkpoints have them under.
class NamedWeights {
 public:
  NamedWeights(const ParameterLayout& layout, const at::Tensor& flat);
  const at::Tensor& operator[](const std::string& name) const;

 private:
  std::map<std::string, at::Tensor> tensors_;
};

OnnxValue reshape(const OnnxValue& x, const std::vector<int64_t>& dims);  // 0: as it was; -1: what is left
OnnxValue transpose(const OnnxValue& x, const std::vector<int64_t>& order);
OnnxValue squeeze(const OnnxValue& x, int64_t axis);
OnnxValue unsqueeze(const OnnxValue& x, int64_t axis);
std::vector<OnnxValue> split(const OnnxValue& x, const std::vector<int64_t>& sizes, int64_t axis);
OnnxValue concat(const std::vector<OnnxValue>& parts, int64_t axis);

OnnxValue silu(const OnnxValue& x);
OnnxValue gelu(const OnnxValue& x);      // with tanh
OnnxValue rms_norm(const OnnxValue& x);  // without a weight
OnnxValue rms_norm(const OnnxValue& x, const at::Tensor& weight);

// `weight` is [outputs, width]. Layers without a bias are those of blocks.
OnnxValue linear(const OnnxValue& x, const at::Tensor& weight, const at::Tensor& bias = {});
// `weight` is [outputs, kernel width]: a convolution over neighbours, of a kernel of one a linear layer.
OnnxValue convolve(const OnnxValue& x, int64_t width, const at::Tensor& weight, const at::Tensor& bias = {});
// x + x convolved with one kernel per channel: weight [kernel, width].
OnnxValue convolve_depthwise(const OnnxValue& x, const at::Tensor& weight);

struct OnnxRotary {
  OnnxValue cosines, sines;  // [positions, head_width / 2]
};
OnnxRotary rotary(const OnnxValue& positions);  // int64 scalar: how many
OnnxValue attend(const OnnxValue& x, int64_t width, const at::Tensor& weight_in, const at::Tensor& weight_out,
                 const OnnxRotary& rotary);

}  // namespace myxtts
