// Parses ASCII digits in code points, for the cleaners of all languages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace myxtts {

constexpr bool is_digit(char32_t letter) { return letter >= U'0' && letter <= U'9'; }

// Returns 0 after the end.
constexpr char32_t letter_at(std::u32string_view text, size_t at) { return at < text.size() ? text[at] : 0; }

constexpr std::u32string_view digits_at(std::u32string_view text, size_t at) {
  if (at >= text.size()) return {};
  size_t end = at;
  while (is_digit(letter_at(text, end))) ++end;
  return text.substr(at, end - at);
}

// Requires at most 19 digits.
constexpr uint64_t value_of(std::u32string_view digits) {
  uint64_t value = 0;
  for (const char32_t digit : digits) value = value * 10 + (digit - U'0');
  return value;
}

// Spells digits one by one; `names` are those of 0 to 9.
template <typename Names>
std::u32string spoken_digits(std::u32string_view digits, const Names& names) {
  std::u32string words;
  for (const char32_t digit : digits) {
    if (!words.empty()) words += U' ';
    words += names[digit - U'0'];
  }
  return words;
}

// 8:30 or 8:30:15.
struct ClockTime {
  std::u32string_view hour = {}, minute = {}, second = {};  // `second` may be empty
  size_t end = 0;                                           // in the text
};
constexpr std::optional<ClockTime> clock_time_at(std::u32string_view text, size_t at) {
  ClockTime time{digits_at(text, at)};
  size_t end = at + time.hour.size();
  if (time.hour.empty() || time.hour.size() > 2 || value_of(time.hour) > 24 || letter_at(text, end) != U':') return {};
  time.minute = digits_at(text, end + 1);
  if (time.minute.size() != 2 || value_of(time.minute) > 59) return {};
  end += 3;
  time.second = letter_at(text, end) == U':' ? digits_at(text, end + 1) : std::u32string_view();
  if (!time.second.empty() && (time.second.size() != 2 || value_of(time.second) > 59)) return {};
  time.end = end + (time.second.empty() ? 0 : 3);
  return time;
}

}  // namespace myxtts
