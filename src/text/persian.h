// Persian text normalisation. Any thread. Most callers want `clean_text` (text/cleaner.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace myxtts {

// Replaces Arabic letters and presentation forms by Persian letters, numbers by words, and uses Persian punctuation.
// Keeps short vowels and the half-space. Takes NFC text with single spaces; returns NFC, possibly with double spaces
// around inserted words.
std::u32string clean_persian(const std::u32string& text);

constexpr uint64_t max_persian_cardinal = 1'000'000'000'000'000;
std::u32string persian_cardinal(uint64_t number);           // 21: بیست و یک; at most the maximum above
std::u32string persian_ordinal(uint64_t number);            // 21: بیست و یکم
std::u32string persian_digits(std::u32string_view digits);  // ASCII digits, one by one

}  // namespace myxtts
