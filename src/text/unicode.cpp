#include "text/unicode.h"

#include "text/utf8.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace myxtts {
namespace {

struct Decomposition {
  char32_t letter, first, second;  // second is 0 where one character simply stands for another
};
struct Composition {
  char32_t first, second, letter;
};
struct CombiningRange {
  char32_t first, last;
  int combining_class;
};
struct Range {
  char32_t first, last;
};
struct PresentationForm {
  char32_t form;
  std::u32string_view letters;
};

#include "text/unicode_tables.inc"

// Hangul syllables are computed, not listed: leading consonant, vowel, and perhaps a trailing consonant.
constexpr char32_t hangul_base = 0xAC00, leading_base = 0x1100, vowel_base = 0x1161, trailing_base = 0x11A7;
constexpr char32_t leading_count = 19, vowel_count = 21, trailing_count = 28;
constexpr char32_t hangul_count = leading_count * vowel_count * trailing_count;

// The last entry of a sorted table whose `key` is at most `letter`, or null.
template <typename Entry, size_t size, typename Key>
const Entry* last_at_most(const Entry (&table)[size], char32_t letter, Key Entry::*key) {
  const auto* after = std::ranges::upper_bound(table, letter, {}, key);
  return after == std::begin(table) ? nullptr : after - 1;
}

int combining_class(char32_t letter) {
  if (letter < 0x300) return 0;
  const CombiningRange* range = last_at_most(combining_ranges, letter, &CombiningRange::first);
  return range != nullptr && letter <= range->last ? range->combining_class : 0;
}

void append_decomposed(char32_t letter, std::u32string& out) {
  if (letter - hangul_base < hangul_count) {
    const char32_t index = letter - hangul_base;
    out.push_back(leading_base + index / (vowel_count * trailing_count));
    out.push_back(vowel_base + index / trailing_count % vowel_count);
    if (index % trailing_count != 0) out.push_back(trailing_base + index % trailing_count);
    return;
  }
  const Decomposition* entry = letter < 0xC0 ? nullptr : last_at_most(decompositions, letter, &Decomposition::letter);
  if (entry == nullptr || entry->letter != letter) {
    out += letter;
    return;
  }
  append_decomposed(entry->first, out);
  if (entry->second != 0) append_decomposed(entry->second, out);
}

// The character that the two make together, or 0.
char32_t composed(char32_t first, char32_t second) {
  if (first - leading_base < leading_count && second - vowel_base < vowel_count) {
    return hangul_base + ((first - leading_base) * vowel_count + second - vowel_base) * trailing_count;
  }
  if (first - hangul_base < hangul_count && (first - hangul_base) % trailing_count == 0 && second > trailing_base &&
      second - trailing_base < trailing_count) {
    return first + second - trailing_base;
  }
  const std::pair wanted(first, second);
  const auto* entry = std::ranges::lower_bound(compositions, wanted, {}, [](const Composition& composition) {
    return std::pair(composition.first, composition.second);
  });
  const bool found = entry != std::end(compositions) && entry->first == first && entry->second == second;
  return found ? entry->letter : 0;
}

void put_marks_in_order(std::u32string& letters) {
  const auto is_mark = [](char32_t letter) { return combining_class(letter) != 0; };
  for (auto first = letters.begin(); (first = std::find_if(first, letters.end(), is_mark)) != letters.end();) {
    const auto last = std::find_if_not(first, letters.end(), is_mark);
    std::stable_sort(first, last, [](char32_t a, char32_t b) { return combining_class(a) < combining_class(b); });
    first = last;
  }
}

}  // namespace

std::u32string to_nfc(const std::u32string& letters) {
  if (std::ranges::all_of(letters, [](char32_t letter) { return letter < 0xC0; })) return letters;
  std::u32string parts;
  parts.reserve(letters.size());
  for (const char32_t letter : letters) append_decomposed(letter, parts);
  put_marks_in_order(parts);

  constexpr int nothing_between = -1;
  constexpr size_t none = std::u32string::npos;
  std::u32string out;
  size_t base = none;                   // where the character that marks join stands
  int class_between = nothing_between;  // of the last mark that did not join it
  for (const char32_t letter : parts) {
    const int own_class = combining_class(letter);
    const char32_t joined = base != none && class_between < own_class ? composed(out[base], letter) : 0;
    if (joined != 0) {
      out[base] = joined;
      continue;
    }
    if (own_class == 0) base = out.size();
    class_between = own_class == 0 ? nothing_between : own_class;
    out += letter;
  }
  return out;
}

std::string to_nfc(std::string_view utf8) {
  if (std::ranges::all_of(utf8, [](char byte) { return static_cast<unsigned char>(byte) < 0x80; })) {
    return std::string(utf8);
  }
  const std::vector<char32_t> letters = decode_utf8(utf8);
  const std::u32string nfc = to_nfc(std::u32string(letters.begin(), letters.end()));
  return encode_utf8({nfc.begin(), nfc.end()});
}

bool is_text(char32_t letter) {
  const Range* range = last_at_most(text_ranges, letter, &Range::first);
  return range != nullptr && letter <= range->last;
}

std::u32string_view presentation_form_letters(char32_t form) {
  if (form < 0xFB50 || form > 0xFEFC) return {};
  const PresentationForm* entry = last_at_most(presentation_forms, form, &PresentationForm::form);
  return entry != nullptr && entry->form == form ? entry->letters : std::u32string_view{};
}

}  // namespace myxtts
