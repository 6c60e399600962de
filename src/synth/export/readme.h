// README.md of an exported folder, in English and Persian.
#pragma once

#include <string>
#include <vector>

namespace myxtts {

struct ExportedVoice {
  std::vector<std::string> speakers;  // in the order of `sid`; empty: one, without a number
  std::string language;               // espeak-ng's voice
  int sample_rate = 0;
  std::string precision;
  bool espeak_data = false;  // lies in the folder
};

std::string export_readme(const ExportedVoice& voice);

}  // namespace myxtts
