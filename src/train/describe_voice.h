// What a voice trained with this configuration on this corpus is, besides its weights.
#pragma once

#include "corpus/corpus.h"
#include "synth/voice_description.h"

namespace myxtts {

VoiceDescription describe_voice(const Config& config, const Corpus& corpus);

}  // namespace myxtts
