// The words of the demo corpus.
#pragma once

#include "base/random.h"

#include <string>
#include <vector>

namespace myxtts {

// The languages that have a list.
std::vector<std::string> demo_languages();
// Those whose letters all have a sound of the built-in voice.
std::vector<std::string> formant_languages();

// A sentence of three to nine words with a comma here and there. Throws Error for a language without a list.
std::string demo_sentence(const std::string& language, Random& random);

}  // namespace myxtts
