// What a voice trained with this configuration on this corpus is, besides its weights.
#pragma once

#include "corpus/corpus.h"
#include "synth/voice_description.h"

namespace myxtts {

// `origin`: the voice whose weights it begins with. Its tokens, speakers and languages come first, and the statistics
// of its mel stay.
VoiceDescription describe_voice(const Config& config, const Corpus& corpus, const VoiceDescription* origin = nullptr);

}  // namespace myxtts
