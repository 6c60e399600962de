// Everything written with figures in Persian: numbers, percentages, dates, times. Part of `clean_persian`.
#pragma once

#include "text/rewriter.h"

namespace myxtts {

// Says what stands at `text.at` in words and moves past it, or returns false with nothing changed. The digits are to be
// ASCII, which `text_with_ascii_digits` makes of Persian and Arabic ones.
bool say_persian_figure(Rewriter& text);

std::u32string text_with_ascii_digits(const std::u32string& text);

}  // namespace myxtts
