// Acoustic model: text to log-mel by conditional flow matching over a monotonic alignment, as in Matcha-TTS.
//
//   tokens ─► encoder ─► mu, a mean frame per token ─► alignment with the mel ─► mu per frame ────┐
//                    └─► durations                      noise, time ─► x_t ──────────────────────┴─► decoder ─► flow
//
// A voice of several speakers or languages is conditioned: one vector per row, of its speaker (from a table, or from a
// reference: a stretch of the speaker's mel) and its language, goes into the encoder, the durations and the decoder.
//
// Rows are padded to a static shape. Padding does not change results: attention masks it, convolutions see zeros beyond
// a row's end, and each loss is a mean over valid positions. A Voice is immutable; any thread may call it.
#pragma once

#include "model/parameters.h"
#include "model/trunk.h"
#include "model/voice_spec.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

namespace myxtts {

struct VoiceBatch {
  at::Tensor tokens;        // int32 [rows, text]
  at::Tensor text_lengths;  // int32 [rows]; 0 in an empty row
  at::Tensor mel_lengths;   // int32 [rows]
  at::Tensor mel;           // float [rows, frames, n_mels]
  // Of a conditioned voice.
  at::Tensor speaker = {}, language = {};  // int32 [rows]; -1: not known
  at::Tensor reference = {};               // float [first rows, reference frames, n_mels]; the others have none
  at::Tensor reference_lengths = {};       // int32 [first rows]; 0: there is none either
  // Of a part of a batch: valid tokens and frames of the whole, int scalars that its losses are divided by.
  at::Tensor whole_tokens = {}, whole_frames = {};
};

// Random inputs of one step.
struct FlowNoise {
  at::Tensor time;   // float [rows], in [0, 1)
  at::Tensor noise;  // float [rows, frames, n_mels], standard normal
  DropoutKey dropout = {};
  at::Tensor kept = {};          // float [rows], in [0, 1)
  double condition_dropout = 0;  // a row with less of `kept` has no condition
};

struct VoiceLosses {
  at::Tensor total;               // scalar, the sum of the terms
  std::vector<at::Tensor> terms;  // scalars, in the order of Voice::loss_names()
  at::Tensor token_of_frame;      // int32 [rows, frames]; -1 in padding
  at::Tensor mu;                  // [rows, text, n_mels], normalised

  const at::Tensor& operator[](std::string_view name) const;  // a term; throws Error if there is none of that name
};

// Scalars, in the mean over valid frames.
struct MelDistances {
  at::Tensor mel;       // absolute difference of the values
  at::Tensor cepstral;  // length of the difference of 13 cepstral coefficients, times 10 / ln 10: in dB if a value is
                        // the natural logarithm of an amplitude
};

struct SynthesizedMel {
  at::Tensor mel = {};                  // float [frames, n_mels] on the CPU, denormalised
  std::vector<int64_t> durations = {};  // frames per token
};

// A text before it is spoken. With guidance there are two rows: with the condition and without.
struct EncodedText {
  at::Tensor mu;             // float [rows, text, n_mels]
  at::Tensor log_durations;  // float [rows, text]
  at::Tensor condition;      // [rows, width] of the decoder; not defined in a voice without conditions
};

// Who speaks in which language; nothing for a voice without conditions.
struct SpeakingAs {
  at::Tensor vector = {};  // [condition_width]
  int64_t language = -1;   // -1: none
};

class Voice {
 public:
  // `fused`: use fused kernels if they support the weights' type and device.
  explicit Voice(const VoiceSpec& spec, bool fused = true);

  // Terms of the loss.
  static const std::vector<std::string>& loss_names();

  const VoiceSpec& spec() const { return spec_; }
  const ParameterLayout& layout() const { return layout_; }
  // Whether fused kernels are enabled and support weights like `x`.
  bool uses_fused(const at::Tensor& x) const { return fused_ && has_fused_kernels(x); }

  // Computes in the weights' precision, the losses in float. `inspect` receives each activation and disables fusion.
  VoiceLosses losses(const Weights& weights, const VoiceBatch& batch, const FlowNoise& noise,
                     const Inspect& inspect = {}) const;

  // The log-mel that it speaks with the recording's durations: [rows, frames, n_mels], without gradients.
  at::Tensor teacher_forced(const Weights& weights, const VoiceBatch& batch, const FlowNoise& noise,
                            const SynthesisOptions& options) const;

  // How far the log-mel that it speaks is from the recording's, with the recording's durations, without gradients.
  // Losses of held-out clips rise while a voice still gets clearer; this does not.
  MelDistances mel_distances(const Weights& weights, const VoiceBatch& batch, const FlowNoise& noise,
                             const SynthesisOptions& options) const;

  // Vectors [condition_width] of a conditioned voice: of a speaker of its table, and of a mel [frames, n_mels].
  at::Tensor speaker_vector(const Weights& weights, int64_t speaker) const;
  at::Tensor reference_vector(const Weights& weights, const at::Tensor& mel) const;

  // The parts of synthesis, without gradients and without waiting for the device; between them the host learns how
  // many frames there are. `tokens` are int32 [1, text], `vector` is [1, condition_width], `length` and `language` are
  // int32 [1]; the last two are ignored without conditions.
  // Throws Error if the text is too long.
  EncodedText encode_text(const Weights& weights, const at::Tensor& tokens, const at::Tensor& length,
                          const at::Tensor& vector, const at::Tensor& language, bool guided) const;
  // Mel [1, frames, n_mels] of standard normal noise of that shape and the mean of each frame's token, [rows, frames,
  // n_mels]. `guidance`, a float scalar on the device, is in the place of options.guidance, so that what is captured
  // once serves all; it is used with two rows.
  at::Tensor speak_text(const Weights& weights, const at::Tensor& noise, const at::Tensor& frame_mu,
                        const at::Tensor& length, const at::Tensor& condition, const at::Tensor& guidance,
                        const SynthesisOptions& options) const;

  // Synthesizes the log-mel of one text, without gradients.
  SynthesizedMel synthesize(const Weights& weights, const std::vector<int64_t>& tokens, const SynthesisOptions& options,
                            const SpeakingAs& speaker = {}) const;

 private:
  struct Block {
    size_t attention_norm, attention_in, attention_out, ffn_norm, ffn_in, ffn_out, depthwise;
  };
  struct Encoded {
    at::Tensor mu, log_durations;
  };

  // What the condition adds to the encoder's input, the duration predictor's and the flow's time, each [rows, width];
  // not defined in a voice without conditions.
  struct Condition {
    at::Tensor encoder = {}, duration = {}, decoder = {};
  };
  // What a pass through a part has besides its input.
  struct Pass {
    Condition condition = {};
    DropoutKey dropout = {};
    const Inspect& inspect = no_inspect;
  };
  static const Inspect no_inspect;

  Encoded encode(const Weights& weights, const at::Tensor& tokens, const at::Tensor& lengths, const Pass& pass) const;
  at::Tensor predict_durations(const Weights& weights, const at::Tensor& encoded, const at::Tensor& lengths,
                               const Pass& pass) const;
  // `input`: noisy frame x_t and the mean of its token, concatenated: [rows, frames, 2 n_mels].
  at::Tensor decode(const Weights& weights, const at::Tensor& input, const at::Tensor& time, const at::Tensor& lengths,
                    const Pass& pass) const;
  // Mel [rows, frames, n_mels], normalised, from standard normal noise and the mean of each frame's token. With
  // guidance there are twice as many rows of means and conditions: those with the condition, then those without.
  at::Tensor speak(const Weights& weights, const at::Tensor& noise, const at::Tensor& frame_mu,
                   const at::Tensor& lengths, const Condition& condition, const at::Tensor& guidance,
                   const SynthesisOptions& options) const;
  // Of a batch.
  Condition condition_of(const Weights& weights, const VoiceBatch& batch, const FlowNoise& noise,
                         const Inspect& inspect) const;
  // Of vectors [rows, condition_width].
  Condition condition_from(const Weights& weights, const at::Tensor& vectors) const;
  // [rows, windows, condition_width] of mel [rows, frames, n_mels]. `windows`, int [rows], are those of its valid
  // frames; below 1: the row has none.
  at::Tensor encode_references(const Weights& weights, const at::Tensor& mel, const at::Tensor& windows,
                               const DropoutKey& dropout, const Inspect& inspect) const;
  at::Tensor language_vectors(const Weights& weights, const at::Tensor& languages) const;
  at::Tensor run(const Trunk& trunk, const at::Tensor& x, const at::Tensor& lengths, const Inspect& inspect) const;
  Trunk trunk_of(const Weights& weights, const std::vector<Block>& blocks, bool modulated) const;
  Block add_block(const std::string& name, int64_t width, int64_t kernel, bool decoder);
  void add_condition();

  VoiceSpec spec_;
  bool fused_;
  ParameterLayout layout_;
  size_t embedding_ = 0;
  size_t speaker_table_ = 0, language_table_ = 0, reference_in_ = 0, reference_norm_ = 0;
  struct ReferenceBlock {
    size_t norm = 0, in = 0, out = 0;
  };
  ReferenceBlock reference_;
  size_t condition_ = 0;
  std::vector<Block> encoder_;
  size_t encoder_norm_ = 0, mu_weight_ = 0, mu_bias_ = 0;
  struct DurationLayer {
    size_t weight, bias, norm;
  };
  std::vector<DurationLayer> duration_;
  size_t duration_out_ = 0, duration_out_bias_ = 0;
  size_t decoder_in_ = 0, decoder_in_bias_ = 0;
  size_t time_in_ = 0, time_in_bias_ = 0, time_out_ = 0, time_out_bias_ = 0, modulation_ = 0, modulation_bias_ = 0;
  std::vector<Block> decoder_;
  std::vector<size_t> tables_;  // per decoder block: learned offset of the adaptive-norm modulation
  size_t final_modulation_ = 0, final_modulation_bias_ = 0, decoder_out_ = 0, decoder_out_bias_ = 0;
};

// An untrained voice may predict any duration; a token is limited to about two seconds.
constexpr int64_t max_frames_per_token = 200;

// A sentence is limited to so many tokens and frames, over a minute of sound: the time of attention grows with their
// square.
constexpr int64_t max_sentence = 8192;

// Frames per token, from their logarithms, float [text] on the CPU. Throws Error if they are too many.
std::vector<int64_t> frames_of_tokens(const at::Tensor& log_durations, double speed);

}  // namespace myxtts
