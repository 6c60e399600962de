// A long text as the pieces in which it is spoken. Any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace myxtts {

// Sentences in order, without white space around them and with single spaces within; nothing else is lost. A sentence
// of more than `longest_code_points` is cut on after a comma or its like, or else at a space; a word is cut only where
// it is too long by itself. At best a guess: abbreviations are judged by a short list and by what follows. Takes the
// text as it was written: cleaning it first takes away capitals and points. Throws Error where the text is not UTF-8.
std::vector<std::string> split_sentences(std::string_view text, size_t longest_code_points);

}  // namespace myxtts
