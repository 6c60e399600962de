// Reading ASCII digits in a text of code points.
#pragma once

#include <cstdint>
#include <string_view>

namespace myxtts {

constexpr bool is_digit(char32_t letter) { return letter >= U'0' && letter <= U'9'; }

// 0 beyond the end.
constexpr char32_t letter_at(std::u32string_view text, size_t at) { return at < text.size() ? text[at] : 0; }

constexpr std::u32string_view digits_at(std::u32string_view text, size_t at) {
  if (at >= text.size()) return {};
  size_t end = at;
  while (is_digit(letter_at(text, end))) ++end;
  return text.substr(at, end - at);
}

// Of at most 19 digits; the callers see to that.
constexpr uint64_t value_of(std::u32string_view digits) {
  uint64_t value = 0;
  for (const char32_t digit : digits) value = value * 10 + (digit - U'0');
  return value;
}

}  // namespace myxtts
