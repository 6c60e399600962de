// Expands numbers in English text to words: amounts, money, dates, times, fractions. Part of `clean_english`.
#pragma once

#include "text/rewriter.h"

namespace myxtts {

// Each expands the expression at `text.at` and advances, or returns false without changes.
bool expand_english_number(Rewriter& text);  // starts with a digit, sign, currency or point
bool expand_english_date(Rewriter& text);    // starts with a month

}  // namespace myxtts
