// Everything written with figures in English: amounts, money, dates, times, fractions. Part of `clean_english`.
#pragma once

#include "text/rewriter.h"

namespace myxtts {

// Each says what stands at `text.at` in words and moves past it, or returns false with nothing changed.
bool say_english_figure(Rewriter& text);  // begins with a digit, a sign, a currency or a point
bool say_english_date(Rewriter& text);    // begins with a month

}  // namespace myxtts
