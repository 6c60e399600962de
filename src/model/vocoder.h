// Vocoder: log-mel to waveform. Blocks over frames (a norm, a depthwise convolution and a feed-forward: the trunk
// without attention) predict magnitude and phase of a short-time spectrum, whose inverse is the waveform, as in Vocos.
// There is no upsampling: all work is done at the rate of the frames. Immutable; any thread.
#pragma once

#include "model/parameters.h"
#include "model/spectrum.h"
#include "model/trunk.h"

#include <array>
#include <string_view>

namespace myxtts {

struct VocoderSize {
  std::string_view name;
  int64_t blocks = 0, width = 0, hidden = 0;
  int64_t narrower = 1;  // discriminators
};

constexpr int64_t vocoder_kernel = 7;  // of the first convolution and of the blocks', in frames

constexpr std::array<VocoderSize, 2> vocoder_sizes = {{
    //                     parameters, with 80 mels
    {"tiny", 4, 192, 576, 4},  //  1.2 M
    {"base", 8, 512, 1536},    // 13.4 M
}};

const VocoderSize& vocoder_size(std::string_view name);

struct VocoderSpec {
  VocoderSize size;
  int64_t n_mels = 80;
  Frames frames;                     // of the mel
  double mel_mean = 0, mel_std = 1;  // of the values, which are normalised by them
};

class Vocoder {
 public:
  static constexpr double loudest = 4.6;  // logarithm of the largest magnitude, about 100

  explicit Vocoder(const VocoderSpec& spec, bool fused = true);

  const VocoderSpec& spec() const { return spec_; }
  const ParameterLayout& layout() const { return layout_; }

  // Frames on either side that a sample depends on.
  int64_t context_frames() const;

  // `mel` is float [rows, frames, n_mels], `tables` those of its frames. `lengths`, int [rows], are the frames of each
  // row that are no padding; undefined: all. Float [rows, samples].
  at::Tensor waveform(const Weights& weights, const SpectrumTables& tables, const at::Tensor& mel, int64_t samples,
                      const Inspect& inspect = {}, const at::Tensor& lengths = {}) const;

 private:
  struct Block {
    size_t norm, depthwise, ffn_in, ffn_out;
  };

  VocoderSpec spec_;
  bool fused_;
  ParameterLayout layout_;
  size_t in_ = 0, in_bias_ = 0, norm_ = 0, head_ = 0, head_bias_ = 0;
  std::vector<Block> blocks_;
};

}  // namespace myxtts
