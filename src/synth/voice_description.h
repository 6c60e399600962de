// What a voice is besides its weights: how texts become tokens, and what its frames mean.
#pragma once

#include "model/voice_spec.h"
#include "settings/config.h"
#include "text/vocabulary.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace myxtts {

struct VoiceDescription {
  Config config;  // as it was resolved
  Vocabulary vocabulary{{}};
  double mel_mean = 0, mel_std = 1;
  bool convolutions = true;  // false: a voice of version 0.1

  VoiceSpec spec() const;

  // As the metadata of a safetensors file, and back. `path` is what an Error names.
  std::map<std::string, std::string> to_metadata() const;
  static VoiceDescription from_metadata(const std::map<std::string, std::string>& metadata,
                                        const std::filesystem::path& path);
};

// Cleaned and numbered as the texts that the voice was trained on. Throws Error naming what the voice cannot say.
std::vector<uint16_t> tokens_of_text(const VoiceDescription& voice, const std::string& text);

// Throws Error that names the first thing that makes the checkpoint at `path` another voice.
void check_same_voice(const std::filesystem::path& path, const VoiceDescription& saved, const VoiceDescription& wanted);

}  // namespace myxtts
