// Splits a long text into sentences for synthesis. Any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace myxtts {

// Returns trimmed sentences in order, with single spaces. Splits a sentence of more than `max_code_points` after a
// comma, else at a space, else within a word. Heuristic: abbreviations come from a short list and the right context.
// Takes uncleaned text, because cleaning removes capitals and points. Throws Error if the text is not UTF-8.
std::vector<std::string> split_sentences(std::string_view text, size_t max_code_points);

}  // namespace myxtts
