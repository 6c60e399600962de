// What a voice is besides its weights: how texts become tokens, and what its frames mean.
#pragma once

#include "base/config.h"
#include "corpus/corpus.h"
#include "model/voice_spec.h"
#include "text/vocabulary.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace myxtts {

struct VoiceDescription {
  Config config;  // as it was resolved
  Vocabulary vocabulary{{}};
  double mel_mean = 0, mel_deviation = 1;

  VoiceSpec spec() const;
};

VoiceDescription describe_voice(const Config& config, const Corpus& corpus);

// Cleaned and numbered as the texts that the voice was trained on. Throws Error naming what the voice cannot say.
std::vector<uint16_t> tokens_of_text(const VoiceDescription& voice, const std::string& text);

// Throws Error that names the first thing that makes the checkpoint at `path` another voice.
void check_same_voice(const std::filesystem::path& path, const VoiceDescription& saved, const VoiceDescription& wanted);

}  // namespace myxtts
