// The weights of one voice as the beginning of another: taken over by name, where vocabularies and lists of speakers
// differ row by row.
#pragma once

#include "corpus/corpus.h"
#include "model/voice.h"
#include "synth/voice_description.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace myxtts {

struct TakenOver {
  at::Tensor flat;                  // in the layout of the new voice, float, on the CPU
  std::vector<std::string> fresh;   // what begins anew: parameters, tokens, speakers, languages
  std::vector<std::string> unused;  // parameters that have no place in the new voice
};

// The EMA weights of the checkpoint at `path`, which `from` describes, for `voice`. Speakers that it did not know begin
// with what its reference encoder makes of their clips.
TakenOver take_over(const std::filesystem::path& path, const VoiceDescription& from, const VoiceDescription& voice,
                    const Corpus& corpus, uint64_t seed);

}  // namespace myxtts
