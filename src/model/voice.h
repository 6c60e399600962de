// The voice: text to log-mel by flow matching over a monotonic alignment.
//
//   tokens ─► encoder ─► mu, a mean frame per token ─► aligned with the mel ─► mu of every frame ─┐
//                    └─► durations                      noise, time ─► x_t ──────────────────────┴─► decoder ─► flow
//
// Rows are padded to a static shape, and padding changes nothing: attention sees a row's own positions alone, no other
// operation mixes positions, and every loss is a sum over valid positions divided by their number.
#pragma once

#include "model/parameters.h"
#include "model/trunk.h"
#include "model/voice_spec.h"

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace myxtts {

struct VoiceBatch {
  at::Tensor tokens;        // int32 [rows, text]
  at::Tensor text_lengths;  // int32 [rows]; 0 in an empty row
  at::Tensor mel_lengths;   // int32 [rows]
  at::Tensor mel;           // float [rows, frames, n_mels]
};

// What a step draws at random.
struct FlowNoise {
  at::Tensor time;   // float [rows], in [0, 1)
  at::Tensor noise;  // float [rows, frames, n_mels], normal
};

struct VoiceLosses {
  at::Tensor total, prior, duration, flow;  // scalars; total is the sum of the others
  at::Tensor token_of_frame;                // int32 [rows, frames]; -1 in padding
  at::Tensor mu;                            // [rows, text, n_mels], normalised
};

struct Spoken {
  at::Tensor mel;                  // float [frames, n_mels] on the CPU, in the corpus's units
  std::vector<int64_t> durations;  // frames of each token
};

class Voice {
 public:
  // `fused`: where there are fused kernels for the weights' type and device.
  explicit Voice(const VoiceSpec& spec, bool fused = true);

  const VoiceSpec& spec() const { return spec_; }
  const ParameterLayout& layout() const { return layout_; }
  // Whether there are fused kernels for such weights, and they are wanted.
  bool fuses(const at::Tensor& x) const { return fused_ && can_fuse(x); }

  // Computes in the weights' precision; the losses in float. With `inspect` of plain operations, each of whose results
  // it is shown.
  VoiceLosses losses(const Weights& weights, const VoiceBatch& batch, const FlowNoise& noise,
                     const Inspect& inspect = {}) const;

  // One text, without gradients.
  Spoken speak(const Weights& weights, const std::vector<int64_t>& tokens, const SpeakOptions& options) const;

 private:
  struct Block {
    size_t attention_norm, attention_in, attention_out, feed_norm, feed_in, feed_out;
  };
  struct Encoded {
    at::Tensor mu, log_durations;
  };

  Encoded encode(const Weights& weights, const at::Tensor& tokens, const at::Tensor& lengths,
                 const Inspect& inspect = {}) const;
  // `input`: a frame of noise and mel, and its token's mean, side by side.
  at::Tensor decode(const Weights& weights, const at::Tensor& input, const at::Tensor& time, const at::Tensor& lengths,
                    const Inspect& inspect = {}) const;
  at::Tensor run(const Trunk& trunk, const at::Tensor& x, const at::Tensor& lengths, const Inspect& inspect) const;
  Trunk trunk_of(const Weights& weights, const std::vector<Block>& blocks, bool modulated) const;
  Block add_block(const std::string& name, int64_t width, bool adaptive);

  VoiceSpec spec_;
  bool fused_;
  ParameterLayout layout_;
  size_t embedding_ = 0;
  std::vector<Block> encoder_;
  size_t encoder_norm_ = 0, mu_weight_ = 0, mu_bias_ = 0;
  size_t duration_in_ = 0, duration_in_bias_ = 0, duration_out_ = 0, duration_out_bias_ = 0;
  size_t decoder_in_ = 0, decoder_in_bias_ = 0;
  size_t time_in_ = 0, time_in_bias_ = 0, time_out_ = 0, time_out_bias_ = 0, modulation_ = 0, modulation_bias_ = 0;
  std::vector<Block> decoder_;
  std::vector<size_t> tables_;  // of the decoder's blocks: what each adds to the modulation
  size_t final_modulation_ = 0, final_modulation_bias_ = 0, decoder_out_ = 0, decoder_out_bias_ = 0;
};

}  // namespace myxtts
