#include "synth/export/onnx_voice.h"

#include "text/vocabulary.h"

#include <ATen/ATen.h>

namespace myxtts {
namespace {

OnnxCondition add_condition(OnnxGraph& graph, const OnnxVoice& voice, const NamedWeights& weights) {
  if (!voice.conditions.defined()) return {};
  OnnxValue vector = graph.constant(voice.conditions);
  if (voice.conditions.size(0) > 1) vector = graph.node("Gather", {vector, graph.input("sid", at::kLong, {"1"})});
  const int64_t encoder = voice.spec.size.encoder_width, decoder = voice.spec.size.decoder_width;
  const std::vector<OnnxValue> parts =
      split(linear(vector, weights["condition.weight"]), {encoder, encoder, decoder}, 1);
  return {parts[0], parts[1], parts[2]};
}

// The number of each frame's token: how many tokens have ended before it.
OnnxValue token_of_frame(const OnnxValue& durations, const OnnxValue& frames) {
  OnnxGraph& graph = *durations.graph;
  constexpr int64_t int64_type = 7;
  const OnnxValue ends = graph.node("CumSum", {durations, graph.integer(0)});
  const OnnxValue frame = graph.node("Range", {graph.integer(0), frames, graph.integer(1)});
  const OnnxValue ended = graph.node("LessOrEqual", {unsqueeze(ends, 0), unsqueeze(frame, 1)});
  return graph.node("ReduceSum", {graph.node("Cast", {ended}, {{"to", int64_type}}), graph.integers({1})},
                    {{"keepdims", 0}});
}

OnnxValue without_blanks(const OnnxValue& tokens) {
  OnnxGraph& graph = *tokens.graph;
  const OnnxValue blank = graph.integer(Vocabulary::blank);
  const OnnxValue kept = graph.node("Not", {graph.node("Equal", {tokens, blank})});
  return graph.node("Compress", {tokens, kept}, {{"axis", 0}});
}

}  // namespace

void add_voice(OnnxGraph& graph, const OnnxVoice& voice, const NamedWeights& weights) {
  const OnnxValue x = graph.input("x", at::kLong, {"1", "tokens"});
  const OnnxValue length = graph.input("x_length", at::kLong, {"1"});
  const OnnxValue noise_scale = graph.input("noise_scale", at::kFloat, {"1"});
  const OnnxValue length_scale = graph.input("length_scale", at::kFloat, {"1"});
  const OnnxCondition condition = add_condition(graph, voice, weights);

  const OnnxValue given = graph.node("Slice", {squeeze(x, 0), graph.integers({0}), length, graph.integers({0})});
  const OnnxValue tokens = voice.strip_blanks ? without_blanks(given) : given;
  const OnnxEncoded encoded = add_encoder(voice, weights, tokens, length_scale, condition);
  const OnnxValue frames = graph.node("ReduceSum", {encoded.durations}, {{"keepdims", 0}});
  const OnnxValue frame_mu = graph.node("Gather", {encoded.mu, token_of_frame(encoded.durations, frames)});
  const OnnxValue noise = graph.node("RandomNormalLike", {frame_mu}) * noise_scale;
  const OnnxValue normalised = add_decoder(voice, weights, noise, frame_mu, frames, condition);
  const OnnxValue mel = normalised * voice.spec.mel_std + voice.spec.mel_mean;
  graph.output("mel", unsqueeze(transpose(mel, {1, 0}), 0), {"1", std::to_string(voice.spec.n_mels), "frames"});
}

}  // namespace myxtts
