#include "text/cleaner.h"

#include "text/english.h"
#include "text/persian.h"
#include "text/unicode.h"
#include "text/utf8.h"

#include <algorithm>

namespace myxtts {
namespace {

constexpr char32_t half_space = 0x200C;  // ZWNJ, part of the spelling in Persian

bool is_space(char32_t letter) {
  const bool control = letter < 0x20 || (letter >= 0x7F && letter <= 0x9F);
  return control || letter == U' ' || letter == 0xA0 || letter == 0x1680 || (letter >= 0x2000 && letter <= 0x200A) ||
         letter == 0x2028 || letter == 0x2029 || letter == 0x202F || letter == 0x205F || letter == 0x3000;
}

// Invisible layout characters: soft hyphen, zero-width space, word joiner, direction marks, byte order mark.
bool is_invisible(char32_t letter) {
  return letter == 0xAD || letter == 0x61C || letter == 0x200B || letter == 0x200E || letter == 0x200F ||
         (letter >= 0x202A && letter <= 0x202E) || letter == 0x2060 || (letter >= 0x2066 && letter <= 0x2069) ||
         letter == 0xFEFF;
}

// Collapses spaces and trims the ends; keeps single half-spaces that do not touch a space.
std::u32string collapse_spaces(const std::u32string& text) {
  std::u32string out;
  for (const char32_t letter : text) {
    if (is_space(letter)) {
      if (!out.empty() && out.back() == half_space) out.pop_back();
      if (!out.empty() && out.back() != U' ') out += U' ';
    } else if (letter == half_space) {
      if (!out.empty() && out.back() != U' ' && out.back() != half_space) out += half_space;
    } else {
      out += letter;
    }
  }
  while (!out.empty() && (out.back() == U' ' || out.back() == half_space)) out.pop_back();
  return out;
}

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; }

std::string primary_language(std::string_view tag) {
  std::string primary(tag.substr(0, tag.find_first_of("-_")));
  std::ranges::transform(primary, primary.begin(), lower);
  return primary;
}

}  // namespace

std::string clean_text(std::string_view text, std::string_view language) {
  const std::vector<char32_t> decoded = decode_utf8(text);
  std::u32string letters(decoded.begin(), decoded.end());
  std::erase_if(letters, is_invisible);
  letters = collapse_spaces(to_nfc(letters));
  const std::string primary = primary_language(language);
  if (primary == "en") letters = collapse_spaces(clean_english(letters));
  if (primary == "fa") letters = collapse_spaces(clean_persian(letters));
  return encode_utf8({letters.begin(), letters.end()});
}

}  // namespace myxtts
