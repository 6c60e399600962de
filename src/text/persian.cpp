#include "text/persian.h"

#include "text/persian_figures.h"
#include "text/rewriter.h"
#include "text/unicode.h"

#include <utility>

namespace myxtts {
namespace {

constexpr char32_t tatweel = 0x640;

void append_persian(char32_t letter, std::u32string& out) {
  switch (letter) {
    case U'ي':
    case U'ى':
      out += U'ی';
      return;
    case U'ك':
      out += U'ک';
      return;
    case U'ة':
      out += U'ه';
      return;
    case U'أ':
    case U'إ':
    case U'ٱ':
      out += U'ا';
      return;
    case U'ۀ':
      out += U"هٔ";
      return;
    case tatweel:
      return;
    case 0xFDFA:
      out += U"صلی الله علیه و سلم";
      return;
    case 0xFDFB:
      out += U"جل جلاله";
      return;
    default:
      break;
  }
  const std::u32string letters = presentation_form_letters(letter);
  if (letters.empty()) out += letter;
  for (const char32_t plain : letters) append_persian(plain, out);
}

// A mark may join the letter that was put in for another (أ and a madda), hence again until nothing changes.
std::u32string with_persian_letters(std::u32string text) {
  for (;;) {
    std::u32string out;
    for (const char32_t letter : text) append_persian(letter, out);
    out = to_nfc(out);
    if (out == text) return out;
    text = std::move(out);
  }
}

bool is_arabic_script(char32_t letter) { return letter >= 0x600 && letter <= 0x6FF && is_word_letter(letter); }

// , ; ? behind a Persian word (quotes, brackets and spaces may stand between) or directly before one.
std::u32string with_persian_punctuation(std::u32string text) {
  char32_t last_letter = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (is_word_letter(text[at])) last_letter = text[at];
    const bool before_persian = at + 1 < text.size() && is_arabic_script(text[at + 1]);
    if (!is_arabic_script(last_letter) && !before_persian) continue;
    if (text[at] == U',') text[at] = U'،';
    if (text[at] == U';') text[at] = U'؛';
    if (text[at] == U'?') text[at] = U'؟';
  }
  return text;
}

}  // namespace

std::u32string clean_persian(const std::u32string& text) {
  const std::u32string plain = text_with_ascii_digits(with_persian_letters(text));
  Rewriter r{plain};
  while (!r.finished()) {
    if (!expand_persian_number(r)) r.copy();
  }
  return with_persian_punctuation(std::move(r.out));
}

}  // namespace myxtts
