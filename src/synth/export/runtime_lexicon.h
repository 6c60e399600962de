// Words and their phonemes as sherpa-onnx 2 reads them: lexicon.txt, a word and its phonemes per line. That runtime has
// no phonemizer of its own.
#pragma once

#include "text/vocabulary.h"

#include <string>
#include <vector>

namespace myxtts {

// Of the words of these texts, by espeak-ng: each as it is pronounced most often among its neighbours, since "the" is
// another word when it stands alone. Phonemes that the voice does not know are left out.
std::string runtime_lexicon(const std::vector<std::string>& texts, const std::string& language,
                            const Vocabulary& vocabulary);

}  // namespace myxtts
