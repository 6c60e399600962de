// The text files of an exported folder: README.md in English and Persian, and phonemes.py, which its example imports.
#pragma once

#include <string>
#include <vector>

namespace myxtts {

struct ExportedVoice {
  std::vector<std::string> speakers;  // in the order of `sid`; empty: one, without a number
  std::string language;               // espeak-ng's voice
  int sample_rate = 0;
  std::string precision;
  bool lexicon = false;      // lies in the folder
  bool espeak_data = false;  // lies in the folder
};

std::string export_readme(const ExportedVoice& voice);
std::string phonemes_script(const std::string& language);

}  // namespace myxtts
