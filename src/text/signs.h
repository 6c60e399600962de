// Signs that several splitters of text must agree on. Pure functions; any thread.
#pragma once

#include <string_view>

namespace myxtts {

constexpr std::u32string_view closing_signs = U"\"'”’»›)]}」』）";

constexpr bool is_line_end(char32_t letter) {
  return (letter >= U'\n' && letter <= U'\r') || letter == 0x85 || letter == 0x2028 || letter == 0x2029;
}

constexpr bool is_space(char32_t letter) {
  return letter == U' ' || letter == U'\t' || is_line_end(letter) || letter == 0xA0 || letter == 0x1680 ||
         (letter >= 0x2000 && letter <= 0x200A) || letter == 0x202F || letter == 0x205F || letter == 0x3000;
}

}  // namespace myxtts
