#include "text/utf8.h"

#include "base/error.h"

namespace myxtts {

std::vector<char32_t> decode_utf8(std::string_view text) {
  static constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  std::vector<char32_t> letters;
  for (size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    const size_t length = first < 0x80   ? 1
                          : first < 0xC0 ? 0
                          : first < 0xE0 ? 2
                          : first < 0xF0 ? 3
                          : first < 0xF8 ? 4
                                         : 0;
    bool valid = length > 0 && at + length <= text.size();
    char32_t letter = length == 1 ? first : first & (0x7FU >> length);
    for (size_t i = 1; valid && i < length; ++i) {
      const auto next = static_cast<unsigned char>(text[at + i]);
      valid = (next & 0xC0) == 0x80;
      letter = letter << 6 | (next & 0x3F);
    }
    valid = valid && letter >= least[length] && letter <= 0x10FFFF && (letter < 0xD800 || letter > 0xDFFF);
    if (!valid) reject_input("text", "byte {} of the text is not UTF-8", at);
    letters.push_back(letter);
    at += length;
  }
  return letters;
}

std::string encode_utf8(const std::vector<char32_t>& letters) {
  std::string text;
  const auto tail = [&](char32_t letter, int shift) { text += static_cast<char>(0x80 | ((letter >> shift) & 0x3F)); };
  for (const char32_t letter : letters) {
    if (letter < 0x80) {
      text += static_cast<char>(letter);
    } else if (letter < 0x800) {
      text += static_cast<char>(0xC0 | letter >> 6), tail(letter, 0);
    } else if (letter < 0x10000) {
      text += static_cast<char>(0xE0 | letter >> 12), tail(letter, 6), tail(letter, 0);
    } else {
      text += static_cast<char>(0xF0 | letter >> 18), tail(letter, 12), tail(letter, 6), tail(letter, 0);
    }
  }
  return text;
}

}  // namespace myxtts
