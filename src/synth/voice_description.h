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
  // Of a conditioned voice, in the order of its tables; empty: one speaker in one language.
  std::vector<std::string> speakers, languages;
  std::string default_speaker;  // who speaks unless another is asked for

  VoiceSpec spec() const;

  // As the metadata of a safetensors file, and back. `path` is what an Error names.
  std::map<std::string, std::string> to_metadata() const;
  static VoiceDescription from_metadata(const std::map<std::string, std::string>& metadata,
                                        const std::filesystem::path& path);
};

// Cleaned and numbered as the texts that the voice was trained on, in a language: empty is that of data.language.
// Throws Error naming what the voice cannot say.
std::vector<uint16_t> tokens_of_text(const VoiceDescription& voice, const std::string& text,
                                     const std::string& language = {});

// The sentences of a text, none of them longer than the texts that the voice was trained on, also when its numbers are
// words. `language` is not empty. Throws Error if the text is not UTF-8.
std::vector<std::string> pieces_of_text(const VoiceDescription& voice, const std::string& text,
                                        const std::string& language);

// A mark that the voice has never seen becomes the nearest one that it has, or nothing: a pause is no reason to refuse
// a text. Voices of version 0.1 have no marks among phonemes.
std::string with_known_marks(const std::string& text, const Vocabulary& vocabulary);

// Their numbers in the tables. Throws Error with the nearest name.
int64_t speaker_number(const VoiceDescription& voice, const std::string& speaker);
int64_t language_number(const VoiceDescription& voice, const std::string& language);

// Throws Error that names the first thing that makes the checkpoint at `path` another voice.
void check_same_voice(const std::filesystem::path& path, const VoiceDescription& saved, const VoiceDescription& wanted);

}  // namespace myxtts
