#include "text/unicode.h"

#include "base/error.h"
#include "text/utf8.h"

#include <algorithm>
#include <vector>

#include <utf8proc.h>

namespace myxtts {
namespace {

using Letters = std::vector<utf8proc_int32_t>;

// utf8proc takes quadratic time to order a long run of marks.
void put_marks_in_order(Letters& letters) {
  const auto combining_class = [](utf8proc_int32_t letter) { return utf8proc_get_property(letter)->combining_class; };
  const auto is_mark = [&](utf8proc_int32_t letter) { return combining_class(letter) != 0; };
  for (auto first = letters.begin(); (first = std::find_if(first, letters.end(), is_mark)) != letters.end();) {
    const auto last = std::find_if_not(first, letters.end(), is_mark);
    std::ranges::stable_sort(first, last, {}, combining_class);
    first = last;
  }
}

// NFC, or NFKC with UTF8PROC_COMPAT.
std::u32string normalize(std::u32string_view letters, int compatibility) {
  constexpr size_t longest = 18;  // U+FDFA, with compatibility
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | compatibility);
  Letters parts;
  for (const char32_t letter : letters) {
    utf8proc_int32_t of_letter[longest];
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(letter), of_letter, longest, options, nullptr);
    if (count < 0) fail("text", "U+{:X} is not a code point", static_cast<uint32_t>(letter));
    parts.insert(parts.end(), of_letter, of_letter + count);
  }
  put_marks_in_order(parts);
  const utf8proc_ssize_t count = utf8proc_normalize_utf32(parts.data(), std::ssize(parts), options);
  return {parts.begin(), parts.begin() + count};
}

}  // namespace

std::u32string to_nfc(const std::u32string& letters) {
  if (std::ranges::all_of(letters, [](char32_t letter) { return letter < 0xC0; })) return letters;
  // utf8proc 2.7.0 drops this vowel after a Hangul syllable. It composes with nothing, so text is split there.
  constexpr char32_t lost_vowel = U'\u11A7';
  std::u32string out;
  for (size_t from = 0; from < letters.size();) {
    const size_t to = std::min(letters.find(lost_vowel, from), letters.size());
    out += normalize(std::u32string_view(letters).substr(from, to - from), 0);
    if (to < letters.size()) out += lost_vowel;
    from = to + 1;
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
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(letter))) {
    case UTF8PROC_CATEGORY_CC:
      return letter == U'\t' || letter == U'\n';
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CS:
      return false;
    default:
      return letter != U'\uFFFD';
  }
}

std::u32string presentation_form_letters(char32_t form) {
  const bool arabic_form = (form >= 0xFB50 && form <= 0xFDFF) || (form >= 0xFE70 && form <= 0xFEFC);
  if (!arabic_form) return {};
  std::u32string letters = normalize({&form, 1}, UTF8PROC_COMPAT);
  // A mark alone is written on a space or on a tatweel; here it belongs to the letter before it.
  std::erase_if(letters, [](char32_t letter) { return letter == U' ' || letter == U'\u0640'; });
  const bool a_phrase = letters.size() > 4;
  return a_phrase || letters == std::u32string_view(&form, 1) ? std::u32string() : letters;
}

}  // namespace myxtts
