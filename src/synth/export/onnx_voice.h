// A voice as an ONNX model with the inputs and outputs that sherpa-onnx gives and takes, as in Matcha-TTS:
//   x int64 [1, tokens], x_length int64 [1], noise_scale float [1], length_scale float [1], sid int64 [1] ─► mel
// One text at a time; the noise is drawn inside. All evaluations of the flow are in the graph, one after the other.
#pragma once

#include "model/voice_spec.h"
#include "synth/export/layers.h"

namespace myxtts {

struct OnnxVoice {
  VoiceSpec spec;
  bool strip_blanks = false;  // the runtime puts blanks between tokens, and the voice has learnt none
  at::Tensor conditions;      // [speakers, condition_width], language included; not defined in a voice without
  SynthesisOptions flow;      // its steps, solver and sway
};

// With more than one speaker the graph has the input `sid`.
void add_voice(OnnxGraph& graph, const OnnxVoice& voice, const NamedWeights& weights);

// Its parts.
struct OnnxCondition {
  OnnxValue encoder, duration, decoder;  // [1, width]; not defined without speakers
};
struct OnnxEncoded {
  OnnxValue mu;         // [tokens, n_mels]
  OnnxValue durations;  // int64 [tokens], in frames
};
// `tokens` int64 [tokens], `length_scale` float [1].
OnnxEncoded add_encoder(const OnnxVoice& voice, const NamedWeights& weights, const OnnxValue& tokens,
                        const OnnxValue& length_scale, const OnnxCondition& condition);
// Mel [frames, n_mels], normalised, from noise and the mean of each frame's token.
OnnxValue add_decoder(const OnnxVoice& voice, const NamedWeights& weights, const OnnxValue& noise,
                      const OnnxValue& frame_mu, const OnnxValue& frames, const OnnxCondition& condition);

}  // namespace myxtts
