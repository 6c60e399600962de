#include "text/english.h"

#include "text/digits.h"
#include "text/english_figures.h"
#include "text/rewriter.h"
#include "text/unicode.h"

#include <utility>

namespace myxtts {
namespace {

// ASCII, Latin-1 and Latin Extended-A: what English and the names in it are written with.
char32_t lower(char32_t letter) {
  if ((letter >= U'A' && letter <= U'Z') || (letter >= 0xC0 && letter <= 0xDE && letter != 0xD7)) return letter + 0x20;
  if (letter < 0x100 || letter > 0x17E) return letter;
  if (letter == 0x130) return U'i';
  if (letter == 0x178) return 0xFF;
  const bool capital_is_odd = (letter >= 0x139 && letter <= 0x148) || letter >= 0x179;
  const bool has_no_pair = letter == 0x131 || letter == 0x138 || letter == 0x149;
  return !has_no_pair && (letter % 2 == 1) == capital_is_odd ? letter + 1 : letter;
}

std::u32string_view plain_sign(char32_t letter) {
  switch (letter) {
    case U'‘':
    case U'’':
    case U'‚':
    case U'‛':
    case U'ʼ':
    case U'′':
      return U"'";
    case U'“':
    case U'”':
    case U'„':
    case U'‟':
    case U'«':
    case U'»':
    case U'″':
      return U"\"";
    case U'‐':
    case U'‑':
    case U'‒':
    case U'−':
      return U"-";
    case U'–':
    case U'—':
    case U'―':
      return U" - ";
    case U'…':
      return U"...";
    default:
      return {};
  }
}

std::u32string lower_with_plain_signs(const std::u32string& text) {
  std::u32string plain;
  for (const char32_t letter : text) {
    const std::u32string_view sign = plain_sign(letter);
    sign.empty() ? void(plain += lower(letter)) : void(plain += sign);
  }
  std::u32string out;
  for (size_t at = 0; at < plain.size();) {  // a run of hyphens is a dash
    size_t end = at;
    while (end < plain.size() && plain[end] == U'-') ++end;
    if (end - at > 1) {
      out += U" - ";
      at = end;
    } else {
      out += plain[at++];
    }
  }
  return to_nfc(out);  // some letters join their accent only in lower case
}

struct Abbreviation {
  std::u32string_view written, words;
  bool point_needed = true;
};
constexpr Abbreviation abbreviations[] = {
    {U"mr", U"mister", false}, {U"mrs", U"missus", false}, {U"dr", U"doctor", false}, {U"ms", U"miss"},
    {U"drs", U"doctors"},      {U"co", U"company"},        {U"jr", U"junior"},        {U"sr", U"senior"},
    {U"maj", U"major"},        {U"gen", U"general"},       {U"rev", U"reverend"},     {U"lt", U"lieutenant"},
    {U"hon", U"honorable"},    {U"sgt", U"sergeant"},      {U"capt", U"captain"},     {U"esq", U"esquire"},
    {U"ltd", U"limited"},      {U"col", U"colonel"},       {U"ft", U"fort"},          {U"vs", U"versus"},
    {U"etc", U"et cetera"},    {U"e.g", U"for example"},   {U"i.e", U"that is"},
};

// Expands an abbreviation of `length` letters; keeps its point only at the end of the text.
void say_abbreviation(Rewriter& r, size_t length, std::u32string_view words) {
  r.at += length;
  if (r.peek() == U'.' && r.at + 1 < r.text.size()) ++r.at;
  r.say(words);
}

// Called at the start of a word.
bool say_abbreviated_word(Rewriter& r) {
  if (r.starts_with(U"no.") && is_digit(r.peek(r.peek(3) == U' ' ? 4 : 3))) {
    say_abbreviation(r, 2, U"number");
    return true;
  }
  if (r.starts_with(U"st.")) {
    const bool before_a_name = r.peek(3) == U' ' && is_word_letter(r.peek(4));
    say_abbreviation(r, 2, before_a_name ? U"saint" : U"street");
    return true;
  }
  for (const Abbreviation& abbreviation : abbreviations) {
    const size_t length = abbreviation.written.size();
    if (!r.starts_with(abbreviation.written)) continue;
    if (r.peek(length) != U'.' && (abbreviation.point_needed || is_word_letter(r.peek(length)))) continue;
    say_abbreviation(r, length, abbreviation.words);
    return true;
  }
  return false;
}

bool say_sign(Rewriter& r) {
  const char32_t sign = r.peek();
  const bool numbers = sign == U'#' && is_digit(r.peek(1));
  if (sign != U'&' && sign != U'%' && !numbers) return false;
  ++r.at;
  r.say(sign == U'&' ? U"and" : sign == U'%' ? U"percent" : U"number");
  return true;
}

}  // namespace

std::u32string clean_english(const std::u32string& text) {
  const std::u32string plain = lower_with_plain_signs(text);
  Rewriter r{plain};
  while (!r.finished()) {
    if (!is_word_letter(r.peek())) {
      if (!expand_english_number(r) && !say_sign(r)) r.copy();
    } else if (!expand_english_date(r) && !say_abbreviated_word(r)) {
      while (is_word_letter(r.peek())) r.copy();
    }
  }
  return std::move(r.out);
}

}  // namespace myxtts
