// A vocoder as an ONNX model of the kind that sherpa-onnx calls Vocos: mel float [1, n_mels, frames] to magnitude and
// cosine and sine of the phase, [1, n_fft / 2 + 1, frames] each. The runtime does the inverse transform.
#pragma once

#include "features/mel_spec.h"
#include "model/hifigan.h"
#include "model/vocoder.h"
#include "synth/export/layers.h"

namespace myxtts {

// Throws Error if the runtime's transform has no such windows.
void add_vocoder(OnnxGraph& graph, const VocoderSpec& spec, const MelSpec& mel, const NamedWeights& weights);

// A HiFi-GAN generator, whose output is the samples.
void add_hifigan(OnnxGraph& graph, const HifiganGenerator& generator, int sample_rate);

}  // namespace myxtts
