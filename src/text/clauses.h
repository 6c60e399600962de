// Splits a text into clauses at its punctuation, so that punctuation stays among phonemes as places for pauses and for
// rising or falling pitch. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace myxtts {

// Punctuation that a phoneme token stands for, the same in every script: , . ; : ! ?
// Persian and CJK marks become their Latin counterparts.

// The one that a letter of any script stands for; 0 if it is not such a mark.
char clause_mark(char32_t letter);

struct Clause {
  std::string words;
  char mark = 0;  // 0 if nothing ends the clause

  bool operator==(const Clause&) const = default;
};

// A mark ends a clause before a space or at the end of the text, so that 3.5 and 10:30 stay whole. Of several marks the
// first counts. Clauses without words are left out. Throws Error if the text is not UTF-8.
std::vector<Clause> split_clauses(std::string_view text);

}  // namespace myxtts
