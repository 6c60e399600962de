// Expands numbers in Persian text to words: numbers, percentages, dates, times. Part of `clean_persian`.
#pragma once

#include "text/rewriter.h"

namespace myxtts {

// Expands the expression at `text.at` and advances, or returns false without changes. Requires ASCII digits; see
// `text_with_ascii_digits`.
bool expand_persian_number(Rewriter& text);

std::u32string text_with_ascii_digits(const std::u32string& text);

}  // namespace myxtts
