#include "synth/export/onnx_vocoder.h"

#include <ATen/ATen.h>

namespace myxtts {
namespace {

constexpr double slope = 0.1, last_slope = 0.01;

OnnxValue leaky_relu(const OnnxValue& x, double negative_slope) {
  return x.graph->node("LeakyRelu", {x}, {{"alpha", negative_slope}});
}

// As long as its input.
OnnxValue convolve(const OnnxValue& x, const HifiganConv& conv, int64_t dilation = 1) {
  const int64_t padding = (conv.weight.size(2) - 1) / 2 * dilation;
  return x.graph->node("Conv", {x, x.graph->weight(conv.weight, true), x.graph->constant(conv.bias)},
                       {{"dilations", std::vector{dilation}}, {"pads", std::vector{padding, padding}}});
}

OnnxValue upsample(const OnnxValue& x, const HifiganConv& conv) {
  const int64_t kernel = conv.weight.size(2), rate = kernel / 2, padding = (kernel - rate) / 2;
  return x.graph->node("ConvTranspose", {x, x.graph->weight(conv.weight, true), x.graph->constant(conv.bias)},
                       {{"strides", std::vector{rate}}, {"pads", std::vector{padding, padding}}});
}

OnnxValue residual(OnnxValue x, const HifiganResidualBlock& block) {
  for (size_t i = 0; i < block.dilated.size(); ++i) {
    const int64_t dilation = 2 * static_cast<int64_t>(i) + 1;
    const OnnxValue inner = convolve(leaky_relu(x, slope), block.dilated[i], dilation);
    x = x + convolve(leaky_relu(inner, slope), block.plain[i]);
  }
  return x;
}

}  // namespace

void add_hifigan(OnnxGraph& graph, const HifiganGenerator& generator, int sample_rate) {
  OnnxValue x = graph.input("mel", at::kFloat, {"1", std::to_string(generator.n_mels), "frames"});
  x = convolve(x, generator.first);
  const size_t together = generator.blocks.size() / generator.upsampling.size();
  for (size_t i = 0; i < generator.upsampling.size(); ++i) {
    x = upsample(leaky_relu(x, slope), generator.upsampling[i]);
    OnnxValue sum = residual(x, generator.blocks[together * i]);
    for (size_t j = 1; j < together; ++j) sum = sum + residual(x, generator.blocks[together * i + j]);
    x = sum * (1.0 / static_cast<double>(together));
  }
  graph.output("audio", graph.node("Tanh", {convolve(leaky_relu(x, last_slope), generator.last)}),
               {"1", "1", "samples"});
  graph.describe("model_type", "hifigan");
  graph.describe("sample_rate", std::to_string(sample_rate));
}

}  // namespace myxtts
