// Persian in one spelling and as it is spoken. Any thread. Most callers want `clean_text` (text/cleaner.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace myxtts {

// Persian letters for their Arabic twins and presentation forms, numbers as words, Persian punctuation. Short vowels
// and the half-space stay. Takes text composed (NFC) and with single spaces; leaves it composed, but spaces may be
// double where words were put in.
std::u32string clean_persian(const std::u32string& text);

constexpr uint64_t largest_persian_cardinal = 1'000'000'000'000'000;
std::u32string persian_cardinal(uint64_t number);           // 21: بیست و یک; at most the largest above
std::u32string persian_ordinal(uint64_t number);            // 21: بیست و یکم
std::u32string persian_digits(std::u32string_view digits);  // of ASCII digits, one by one

}  // namespace myxtts
