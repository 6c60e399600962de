// English text normalisation. Any thread. Most callers want `clean_text` (text/cleaner.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace myxtts {

// Lower case, uniform quotes and dashes, abbreviations and numbers as words. Takes NFC text with single spaces; returns
// NFC, possibly with double spaces around inserted words.
std::u32string clean_english(const std::u32string& text);

constexpr uint64_t max_english_cardinal = 1'000'000'000'000'000'000;
std::u32string english_cardinal(uint64_t number);  // 21: twenty-one; at most the maximum above
std::u32string english_ordinal(uint64_t number);   // 21: twenty-first
std::u32string english_year(uint64_t year);        // 1995: nineteen ninety-five
std::u32string english_decade(uint64_t decade);    // 1990: nineteen nineties
std::u32string english_digits(std::u32string_view digits);

}  // namespace myxtts
