#include "model/voice.h"
#include "synth/export/onnx_voice.h"

#include <string>

#include <ATen/ATen.h>

namespace myxtts {
namespace {

OnnxValue add_block(const OnnxValue& x, int64_t width, const NamedWeights& weights, const std::string& name,
                    const OnnxRotary& angles) {
  const OnnxValue attended = attend(rms_norm(x, weights[name + ".attention.norm"]), width,
                                    weights[name + ".attention.in"], weights[name + ".attention.out"], angles);
  const OnnxValue h = x + attended;
  const OnnxValue hidden = convolve(rms_norm(h, weights[name + ".feed.norm"]), width, weights[name + ".feed.in"]);
  return h + linear(gelu(hidden), weights[name + ".feed.out"]);
}

OnnxValue log_durations(const OnnxVoice& voice, const NamedWeights& weights, OnnxValue hidden) {
  const int64_t width = voice.spec.size.encoder_width;
  if (voice.spec.convolutions) {
    for (int64_t i = 0; i < duration_layers; ++i) {
      const std::string name = "duration.layers." + std::to_string(i);
      hidden = rms_norm(silu(convolve(hidden, width, weights[name + ".weight"], weights[name + ".bias"])),
                        weights[name + ".norm"]);
    }
  } else {
    hidden = silu(linear(hidden, weights["duration.in.weight"], weights["duration.in.bias"]));
  }
  return squeeze(linear(hidden, weights["duration.out.weight"], weights["duration.out.bias"]), 1);
}

}  // namespace

OnnxEncoded add_encoder(const OnnxVoice& voice, const NamedWeights& weights, const OnnxValue& tokens,
                        const OnnxValue& length_scale, const OnnxCondition& condition) {
  OnnxGraph& graph = *tokens.graph;
  const int64_t width = voice.spec.size.encoder_width;
  const OnnxRotary angles = rotary(squeeze(graph.node("Shape", {tokens}), 0));
  OnnxValue h = graph.node("Gather", {graph.constant(weights["encoder.embedding"]), tokens});
  if (condition.encoder.defined()) h = h + condition.encoder;
  for (int64_t i = 0; i < voice.spec.size.encoder_blocks; ++i) {
    h = add_block(h, width, weights, "encoder.blocks." + std::to_string(i), angles);
  }
  const OnnxValue encoded = rms_norm(h, weights["encoder.norm"]);
  OnnxEncoded result;
  result.mu = linear(encoded, weights["encoder.mu.weight"], weights["encoder.mu.bias"]);

  const OnnxValue timed = condition.duration.defined() ? encoded + condition.duration : encoded;
  const OnnxValue frames = graph.node("Exp", {log_durations(voice, weights, timed)}) * length_scale;
  const OnnxValue limited =
      graph.node("Clip", {graph.node("Round", {frames}), graph.scalar(1), graph.scalar(max_frames_per_token)});
  constexpr int64_t int64_type = 7;  // TensorProto.INT64
  result.durations = graph.node("Cast", {limited}, {{"to", int64_type}});
  return result;
}

}  // namespace myxtts
