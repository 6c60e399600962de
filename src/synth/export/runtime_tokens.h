// A voice's tokens as sherpa-onnx reads them: tokens.txt, a symbol and its number per line. The runtime phonemises by
// espeak-ng itself, and looks up single code points of the decomposed form (NFD).
#pragma once

#include "text/vocabulary.h"

#include <string>

namespace myxtts {

// Marks that the voice has never seen have the numbers of the nearest ones. A symbol whose base letter is none of the
// voice's is found by that letter: of what the runtime decomposes it skips the rest.
std::string runtime_tokens(const Vocabulary& vocabulary);

}  // namespace myxtts
