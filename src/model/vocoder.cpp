#include "model/vocoder.h"

#include "base/error.h"

#include <cmath>

#include <ATen/ATen.h>

namespace myxtts {

const VocoderSize& vocoder_size(std::string_view name) {
  for (const VocoderSize& size : vocoder_sizes) {
    if (size.name == name) return size;
  }
  reject_setting("config", "model.size", "is '{}'", name, way_out("a vocoder is tiny or base"));
}

Vocoder::Vocoder(const VocoderSpec& spec, bool fused) : spec_(spec), fused_(fused) {
  const int64_t blocks = spec.size.blocks, width = spec.size.width, hidden = spec.size.hidden;
  const auto fan_in = [](int64_t inputs) { return 1 / std::sqrt(static_cast<double>(inputs)); };
  const int64_t inputs = vocoder_kernel * spec.n_mels, bins = spec.frames.n_fft / 2 + 1;
  in_ = layout_.add("vocoder.in.weight", {width, inputs}, fan_in(inputs));
  in_bias_ = layout_.add("vocoder.in.bias", {width}, 0);
  for (int64_t i = 0; i < blocks; ++i) {
    const std::string block = "vocoder.blocks." + std::to_string(i);
    Block& added = blocks_.emplace_back();
    added.norm = layout_.add(block + ".norm", {width}, 0, 1);
    added.depthwise = layout_.add_to_trunk(block + ".depthwise", {vocoder_kernel, width}, fan_in(vocoder_kernel));
    added.ffn_in = layout_.add_to_trunk(block + ".feed.in", {hidden, width}, fan_in(width));
    added.ffn_out = layout_.add_to_trunk(block + ".feed.out", {width, hidden},
                                         fan_in(hidden) / std::sqrt(static_cast<double>(blocks)));
  }
  norm_ = layout_.add("vocoder.norm", {width}, 0, 1);
  head_ = layout_.add("vocoder.head.weight", {2 * bins, width}, fan_in(width));
  head_bias_ = layout_.add("vocoder.head.bias", {2 * bins}, 0);
  layout_.arrange();
}

int64_t Vocoder::context_frames() const {
  const int64_t overlap = (spec_.frames.n_fft + spec_.frames.hop_length - 1) / spec_.frames.hop_length;
  return (1 + spec_.size.blocks) * (vocoder_kernel / 2) + overlap;
}

at::Tensor Vocoder::waveform(const Weights& weights, const SpectrumTables& tables, const at::Tensor& mel,
                             int64_t samples, const Inspect& inspect, const at::Tensor& row_lengths) const {
  const at::ScalarType type = weights[in_].scalar_type();
  const int64_t rows = mel.size(0), frames = mel.size(1);
  const bool padded = row_lengths.defined();
  const at::Tensor lengths = padded ? row_lengths : at::full({rows}, frames, mel.options().dtype(at::kInt));
  const at::Tensor normalised = ((mel - spec_.mel_mean) / spec_.mel_std).to(type);
  const bool fused = fused_ && has_fused_kernels(normalised) && !inspect;
  const at::Tensor x =
      at::linear(unfold_positions(normalised, lengths, vocoder_kernel), weights[in_], weights[in_bias_]);
  Trunk trunk;
  trunk.name = "vocoder";
  trunk.norm = weights[norm_];
  trunk.overwrite_gradients = weights.overwrite_trunk_gradients;
  trunk.gradient_ready = weights.gradient_ready;
  for (const Block& block : blocks_) {
    Trunk::Block& added = trunk.blocks.emplace_back();
    added.ffn_norm = weights[block.norm], added.depthwise = weights[block.depthwise];
    added.ffn_in = weights[block.ffn_in], added.ffn_out = weights[block.ffn_out];
  }
  RowMask mask;
  mask.positions = frames, mask.row_lengths = lengths;
  const at::Tensor hidden = fused ? run_trunk_fused(trunk, x, mask) : run_trunk(trunk, x, mask, inspect);
  // From here on in float: an error of a phase is noise that can be heard.
  const at::Tensor head =
      at::linear(hidden.to(at::kFloat), weights[head_].to(at::kFloat), weights[head_bias_].to(at::kFloat));
  if (inspect) inspect("vocoder.head", head);
  const std::vector<at::Tensor> parts = head.chunk(2, -1);
  const at::Tensor magnitude = parts[0].clamp_max(loudest).exp();
  const at::Tensor spectrum = at::cat({magnitude * parts[1].cos(), magnitude * parts[1].sin()}, -1);
  at::Tensor valid;
  if (padded) {
    valid = (at::arange(frames, lengths.options()) < lengths.unsqueeze(1)).to(at::kFloat).unsqueeze(2);
  }
  at::Tensor wave = from_spectrum(tables, spectrum, samples, valid);
  if (inspect) inspect("vocoder.waveform", wave);
  return wave;
}

}  // namespace myxtts
