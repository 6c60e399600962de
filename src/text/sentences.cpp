#include "text/sentences.h"

#include "text/digits.h"
#include "text/rewriter.h"
#include "text/signs.h"
#include "text/utf8.h"

#include <algorithm>
#include <array>

namespace myxtts {
namespace {

using Text = std::u32string_view;

constexpr Text opening_signs = U"\"'“‘«‹([{「『（";
constexpr Text sentence_ends = U".!?؟…۔";
constexpr Text wide_sentence_ends = U"。！？；｡";  // scripts without a space after them
constexpr Text clause_ends = U",;:،؛";
constexpr Text wide_clause_ends = U"，、：";

constexpr bool is_one_of(char32_t letter, Text letters) { return letters.find(letter) != Text::npos; }

constexpr bool is_lower_case(char32_t letter) {
  return (letter >= U'a' && letter <= U'z') || (letter >= 0xDF && letter <= 0xFF && letter != 0xF7);
}

constexpr bool is_speakable(char32_t letter) {
  const bool eastern_digit = (letter >= 0x660 && letter <= 0x669) || (letter >= 0x6F0 && letter <= 0x6F9);
  return is_digit(letter) || eastern_digit || (is_word_letter(letter) && !is_one_of(letter, wide_sentence_ends));
}

// Abbreviations before another word, whose point does not end a sentence.
bool is_abbreviation(Text word) {
  static constexpr std::array<Text, 31> known = {U"mr",  U"mrs", U"ms",  U"dr",     U"drs", U"prof", U"st",  U"gen",
                                                 U"col", U"lt",  U"sgt", U"capt",   U"maj", U"rev",  U"hon", U"pres",
                                                 U"gov", U"sen", U"rep", U"vs",     U"fig", U"vol",  U"pp",  U"ed",
                                                 U"eds", U"al",  U"cf",  U"approx", U"e.g", U"i.e",  U"viz"};
  std::u32string lower(word);
  for (char32_t& letter : lower) letter += letter >= U'A' && letter <= U'Z' ? 0x20 : 0;
  return std::find(known.begin(), known.end(), lower) != known.end();
}

// J, or U.S and ق.م
bool is_initials(Text word) {
  for (size_t i = 0; i < word.size(); ++i) {
    if (i % 2 == 0 ? !is_word_letter(word[i]) : word[i] != U'.') return false;
  }
  return word.size() % 2 == 1;
}

size_t skip(Text text, size_t at, Text signs) {
  while (at < text.size() && is_one_of(text[at], signs)) ++at;
  return at;
}

// First letter of the following text; 0 if none.
char32_t next_letter(Text text, size_t at) {
  while (at < text.size() && (is_space(text[at]) || is_one_of(text[at], opening_signs))) ++at;
  return letter_at(text, at);
}

// Whether the point at `at` marks an abbreviation.
bool is_shortening_point(Text text, size_t begin, size_t at) {
  size_t first = at;
  while (first > begin && !is_space(text[first - 1]) && !is_one_of(text[first - 1], opening_signs)) --first;
  const Text word = text.substr(first, at - first);
  const char32_t next = next_letter(text, at + 1);
  if (is_abbreviation(word)) return true;
  if (word == U"No" || word == U"no" || word == U"Nos") return is_digit(next);
  const bool numbers_a_line = first == begin && std::all_of(word.begin(), word.end(), [](char32_t letter) {
                                return is_speakable(letter) && !is_word_letter(letter);
                              });
  if (numbers_a_line || (word.size() == 1 && is_initials(word))) return true;
  if (!is_initials(word) && word != U"etc") return false;
  return is_lower_case(next) || next >= 0x250;  // non-Latin scripts have no capitals to check
}

// One past the end of the sentence if `at` is its last sign, else 0.
size_t sentence_end(Text text, size_t begin, size_t at) {
  const char32_t sign = text[at];
  if (is_line_end(sign)) return at + 1;
  if (is_one_of(sign, wide_sentence_ends)) return skip(text, skip(text, at, wide_sentence_ends), closing_signs);
  if (!is_one_of(sign, sentence_ends)) return 0;
  const size_t signs_end = skip(text, at, sentence_ends), end = skip(text, signs_end, closing_signs);
  const char32_t next = letter_at(text, end);
  const bool space_follows = next == 0 || is_space(next);
  const bool forgotten_space = sign != U'.' && next >= 0x250 && is_word_letter(next);
  if (!space_follows && !forgotten_space) return 0;
  const bool one_point = sign == U'.' && signs_end == at + 1;
  if (one_point && is_shortening_point(text, begin, at)) return 0;
  const bool dots = !one_point && (sign == U'.' || sign == U'…'), quoted = end > signs_end;
  if ((dots || quoted) && is_lower_case(next_letter(text, end))) return 0;  // "What?" he said... and left.
  return end;
}

std::vector<Text> sentences_of(Text text) {
  std::vector<Text> sentences;
  size_t begin = 0;
  bool speaks = false;
  for (size_t at = 0; at < text.size();) {
    const size_t end = speaks ? sentence_end(text, begin, at) : 0;
    speaks = speaks || is_speakable(text[at]);
    if (end > 0) {
      sentences.push_back(text.substr(begin, end - begin));
      begin = at = end;
      speaks = false;
    } else {
      at = std::max(at + 1, skip(text, at, sentence_ends));
    }
  }
  // Punctuation alone stays with the previous sentence.
  if (!speaks && !sentences.empty()) {
    const auto first = static_cast<size_t>(sentences.back().data() - text.data());
    sentences.back() = text.substr(first);
  } else if (begin < text.size()) {
    sentences.push_back(text.substr(begin));
  }
  return sentences;
}

std::u32string with_single_spaces(Text text) {
  std::u32string out;
  for (const char32_t letter : text) {
    if (!is_space(letter)) {
      out += letter;
    } else if (!out.empty() && out.back() != U' ') {
      out += U' ';
    }
  }
  if (!out.empty() && out.back() == U' ') out.pop_back();
  return out;
}

// Combining mark or joiner, which belongs to the previous letter.
constexpr bool leans_on_the_last(char32_t letter) {
  return (letter >= 0x300 && letter <= 0x36F) || (letter >= 0x64B && letter <= 0x65F) || letter == 0x670 ||
         letter == 0x200C || letter == 0x200D;
}

// Length of the first part of an over-long sentence.
size_t first_part(Text text, size_t longest) {
  size_t clause = 0, space = 0;
  for (size_t at = 1; at <= longest; ++at) {
    const bool before_space = text[at] == U' ';
    if (before_space) space = at;
    if ((before_space && is_one_of(text[at - 1], clause_ends)) || is_one_of(text[at - 1], wide_clause_ends))
      clause = at;
  }
  if (clause > 0) return clause;
  if (space > 0) return space;
  size_t cut = longest;
  while (cut > 1 && leans_on_the_last(text[cut])) --cut;
  return cut > 1 ? cut : longest;
}

}  // namespace

std::vector<std::string> split_sentences(std::string_view text, size_t max_code_points) {
  const size_t longest = std::max<size_t>(max_code_points, 1);
  const std::vector<char32_t> letters = decode_utf8(text);
  std::vector<std::string> pieces;
  const auto add = [&](Text piece) { pieces.push_back(encode_utf8({piece.begin(), piece.end()})); };
  for (const Text sentence : sentences_of(Text(letters.data(), letters.size()))) {
    const std::u32string spaced = with_single_spaces(sentence);
    Text rest = spaced;
    while (rest.size() > longest) {
      const size_t cut = first_part(rest, longest);
      add(rest.substr(0, cut));
      rest.remove_prefix(cut);
      if (rest.starts_with(U' ')) rest.remove_prefix(1);
    }
    if (!rest.empty()) add(rest);
  }
  return pieces;
}

}  // namespace myxtts
