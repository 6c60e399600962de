#include "synth/export/onnx_vocoder.h"

#include "base/error.h"

#include <string>

#include <ATen/ATen.h>

namespace myxtts {

void add_vocoder(OnnxGraph& graph, const VocoderSpec& spec, const MelSpec& mel, const NamedWeights& weights) {
  if (mel.win_length != mel.n_fft) {
    reject_input("export", "the vocoder's windows have {} of {} samples, and sherpa-onnx takes whole ones",
                 mel.win_length, mel.n_fft, way_out("train with a mel_preset whose win_length is its n_fft"));
  }
  const int64_t bins = spec.frames.n_fft / 2 + 1;
  const OnnxValue given = graph.input("mel", at::kFloat, {"1", std::to_string(spec.n_mels), "frames"});
  const OnnxValue frames = transpose(squeeze(given, 0), {1, 0});
  const OnnxValue normalised = (frames + -spec.mel_mean) * (1 / spec.mel_std);
  OnnxValue h = convolve(normalised, spec.n_mels, weights["vocoder.in.weight"], weights["vocoder.in.bias"]);
  for (int64_t i = 0; i < spec.size.blocks; ++i) {
    const std::string name = "vocoder.blocks." + std::to_string(i);
    const OnnxValue near = convolve_depthwise(rms_norm(h, weights[name + ".norm"]), weights[name + ".depthwise"]);
    h = h + linear(gelu(linear(near, weights[name + ".feed.in"])), weights[name + ".feed.out"]);
  }
  h = rms_norm(h, weights["vocoder.norm"]);
  const std::vector<OnnxValue> parts =
      split(linear(h, weights["vocoder.head.weight"], weights["vocoder.head.bias"]), {bins, bins}, 1);
  const OnnxValue magnitude = graph.node("Exp", {graph.node("Min", {parts[0], graph.scalar(Vocoder::loudest)})});
  const std::vector<std::string> dims = {"1", std::to_string(bins), "frames"};
  const auto add_output = [&](const char* name, const OnnxValue& value) {
    graph.output(name, unsqueeze(transpose(value, {1, 0}), 0), dims);
  };
  add_output("mag", magnitude);
  add_output("x", graph.node("Cos", {parts[1]}));
  add_output("y", graph.node("Sin", {parts[1]}));
  graph.describe("model_type", "vocos");
  graph.describe("sample_rate", std::to_string(mel.sample_rate));
  graph.describe("n_fft", std::to_string(mel.n_fft));
  graph.describe("hop_length", std::to_string(mel.hop_length));
  graph.describe("win_length", std::to_string(mel.win_length));
  graph.describe("window_type", "hann");
  graph.describe("normalized", "0");
  // Centred windows lose half a window at both ends, which windows at the left edge do not have.
  graph.describe("center", mel.first_sample() == 0 ? "0" : "1");
  graph.describe("pad_mode", "reflect");
}

}  // namespace myxtts
