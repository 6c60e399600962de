#include "model/blocks.h"
#include "model/flow_solver.h"
#include "synth/export/onnx_voice.h"

#include <string>

#include <ATen/ATen.h>

namespace myxtts {
namespace {

struct Decoder {
  const OnnxVoice& voice;
  const NamedWeights& weights;
  OnnxRotary angles;
  OnnxValue frame_mu;
  OnnxCondition condition;

  int64_t width() const { return voice.spec.size.decoder_width; }

  // Scale and shift of a norm, [1, width] each.
  static OnnxValue modulated(const OnnxValue& x, const OnnxValue& scale, const OnnxValue& shift) {
    return rms_norm(x) * (scale + 1.0) + shift;
  }

  // What the adaptive norms are made of at a time: [1, width].
  OnnxValue modulation_input(double time) const {
    OnnxGraph& graph = *frame_mu.graph;
    const OnnxValue sinusoids = graph.constant(time_embedding(at::full({1}, time, at::kFloat), time_embedding_width));
    const OnnxValue inner = silu(linear(sinusoids, weights["decoder.time.in.weight"], weights["decoder.time.in.bias"]));
    const OnnxValue hidden = linear(inner, weights["decoder.time.out.weight"], weights["decoder.time.out.bias"]);
    return silu(condition.decoder.defined() ? hidden + condition.decoder : hidden);
  }

  OnnxValue block(const OnnxValue& x, const std::string& name, const OnnxValue& modulation) const {
    const OnnxValue own = x.graph->constant(weights[name + ".modulation"].view({1, 6 * width()}));
    const std::vector<OnnxValue> m = split(modulation + own, std::vector<int64_t>(6, width()), 1);
    const OnnxValue attended = attend(modulated(x, m[0], m[1]), width(), weights[name + ".attention.in"],
                                      weights[name + ".attention.out"], angles);
    const OnnxValue h = x + m[2] * attended;
    OnnxValue near = modulated(h, m[3], m[4]);
    if (voice.spec.convolutions) near = convolve_depthwise(near, weights[name + ".feed.depthwise"]);
    const OnnxValue hidden = gelu(linear(near, weights[name + ".feed.in"]));
    return h + m[5] * linear(hidden, weights[name + ".feed.out"]);
  }

  OnnxValue velocity(const OnnxValue& x, double time) const {
    const OnnxValue input = modulation_input(time);
    const OnnxValue modulation =
        linear(input, weights["decoder.modulation.weight"], weights["decoder.modulation.bias"]);
    OnnxValue h = linear(concat({x, frame_mu}, 1), weights["decoder.in.weight"], weights["decoder.in.bias"]);
    for (int64_t i = 0; i < voice.spec.size.decoder_blocks; ++i) {
      h = block(h, "decoder.blocks." + std::to_string(i), modulation);
    }
    const std::vector<OnnxValue> last =
        split(linear(input, weights["decoder.final.modulation.weight"], weights["decoder.final.modulation.bias"]),
              {width(), width()}, 1);
    return linear(modulated(h, last[0], last[1]), weights["decoder.out.weight"], weights["decoder.out.bias"]);
  }
};

}  // namespace

OnnxValue add_decoder(const OnnxVoice& voice, const NamedWeights& weights, const OnnxValue& noise,
                      const OnnxValue& frame_mu, const OnnxValue& frames, const OnnxCondition& condition) {
  const Decoder decoder{voice, weights, rotary(frames), frame_mu, condition};
  return solve_flow(noise, voice.flow, [&](const OnnxValue& x, double time) { return decoder.velocity(x, time); });
}

}  // namespace myxtts
