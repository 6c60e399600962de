// Left-to-right text rewriting, for the cleaners of all languages. Left context is the written text, not the source,
// which makes cleaning idempotent.
#pragma once

#include <string>
#include <string_view>

namespace myxtts {

// Letter or combining mark, approximately: anything except space, digit, symbol and punctuation.
constexpr bool is_word_letter(char32_t letter) {
  if (letter < 0x80) return (letter >= U'a' && letter <= U'z') || (letter >= U'A' && letter <= U'Z');
  const bool arabic_sign = (letter >= 0x600 && letter <= 0x60F) || letter == 0x61B || letter == 0x61F ||
                           (letter >= 0x660 && letter <= 0x66D) || letter == 0x6D4 ||
                           (letter >= 0x6F0 && letter <= 0x6F9);
  const bool punctuation = (letter >= 0x2000 && letter <= 0x20CF) || (letter >= 0x2190 && letter <= 0x2BFF) ||
                           (letter >= 0x3000 && letter <= 0x303F);
  return letter >= 0xC0 && letter != 0xD7 && letter != 0xF7 && !arabic_sign && !punctuation;
}

struct Rewriter {
  std::u32string_view text;
  size_t at = 0;  // the next character to read
  std::u32string out = {};

  bool finished() const { return at >= text.size(); }
  // Return 0 outside the text.
  char32_t peek(size_t ahead = 0) const { return at + ahead < text.size() ? text[at + ahead] : 0; }
  char32_t last_written() const { return out.empty() ? 0 : out.back(); }
  bool starts_with(std::u32string_view what) const { return text.substr(at).starts_with(what); }
  void copy() { out += text[at++]; }

  // Writes words, separated by a space from a neighbouring word.
  void say(std::u32string_view words) {
    if (is_word_letter(last_written())) out += U' ';
    out += words;
    if (is_word_letter(peek())) out += U' ';
  }
};

}  // namespace myxtts
