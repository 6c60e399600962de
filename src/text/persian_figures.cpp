#include "text/persian_figures.h"

#include "text/digits.h"
#include "text/persian.h"

#include <utility>

namespace myxtts {
namespace {

using Words = std::u32string;
using View = std::u32string_view;

constexpr char32_t thousands_separator = 0x66C, decimal_separator = 0x66B, percent_sign = 0x66A;

bool can_be_one_number(View digits) {
  const bool leading_zero = digits.size() > 1 && digits[0] == U'0';
  return digits.size() <= 16 && !leading_zero && value_of(digits) <= max_persian_cardinal;
}

Words whole_words(View digits) {
  return can_be_one_number(digits) ? persian_cardinal(value_of(digits)) : persian_digits(digits);
}

// As people read them: up to three figures as one number behind their zeros, longer ones figure by figure.
Words decimal_words(View digits) {
  size_t zeros = 0;
  while (zeros + 1 < digits.size() && digits[zeros] == U'0') ++zeros;
  if (digits.size() - zeros > 3) return persian_digits(digits);
  const Words number = persian_cardinal(value_of(digits.substr(zeros)));
  return zeros == 0 ? number : persian_digits(digits.substr(0, zeros)) + U" " + number;
}

bool is_percent(char32_t sign) { return sign == U'%' || sign == percent_sign; }

constexpr View jalali_months[] = {U"فروردین", U"اردیبهشت", U"خرداد", U"تیر", U"مرداد", U"شهریور",
                                  U"مهر",     U"آبان",     U"آذر",   U"دی",  U"بهمن",  U"اسفند"};
constexpr View gregorian_months[] = {U"ژانویه", U"فوریه", U"مارس",    U"آوریل", U"مه",     U"ژوئن",
                                     U"ژوئیه",  U"اوت",   U"سپتامبر", U"اکتبر", U"نوامبر", U"دسامبر"};

// 1402/5/12 or 12/5/1402, also with hyphens.
bool say_date(Rewriter& r) {
  const View first = digits_at(r.text, r.at);
  const char32_t separator = letter_at(r.text, r.at + first.size());
  if ((separator != U'/' && separator != U'-') || r.last_written() == separator) return false;
  const View second = digits_at(r.text, r.at + first.size() + 1);
  const size_t second_end = r.at + first.size() + 1 + second.size();
  if (letter_at(r.text, second_end) != separator) return false;
  const View third = digits_at(r.text, second_end + 1);
  const size_t end = second_end + 1 + third.size();
  if (letter_at(r.text, end) == separator && is_digit(letter_at(r.text, end + 1))) return false;

  const bool year_first = first.size() == 4 && third.size() <= 2;
  const bool year_last = third.size() == 4 && first.size() <= 2;
  if ((!year_first && !year_last) || second.size() > 2) return false;
  const uint64_t year = value_of(year_first ? first : third);
  const uint64_t month = value_of(second);
  const uint64_t day = value_of(year_first ? third : first);
  if (year < 1000 || month < 1 || month > 12 || day < 1 || day > 31) return false;
  const auto& months = year >= 1200 && year <= 1500 ? jalali_months : gregorian_months;
  r.at = end;
  r.say(persian_ordinal(day) + U" " + Words(months[month - 1]) + U" " + persian_cardinal(year));
  return true;
}

// 8:30 and 8:30:15.
bool say_time(Rewriter& r) {
  const std::optional<ClockTime> time = clock_time_at(r.text, r.at);
  if (!time || r.last_written() == U':') return false;
  const auto& [hour, minute, second, end] = *time;
  r.at = end;
  Words words = persian_cardinal(value_of(hour));
  if (value_of(minute) != 0) words += U" و " + persian_cardinal(value_of(minute)) + U" دقیقه";
  if (!second.empty() && value_of(second) != 0) words += U" و " + persian_cardinal(value_of(second)) + U" ثانیه";
  r.say(words);
  return true;
}

struct Amount {
  Words whole;
  View decimals;
  size_t end = 0;
};

Amount amount_at(View text, size_t at) {
  const auto is_separator = [](char32_t letter) { return letter == U',' || letter == thousands_separator; };
  Amount amount;
  amount.whole = digits_at(text, at);
  amount.end = at + amount.whole.size();
  if (amount.whole.size() <= 3 && amount.whole[0] != U'0') {
    size_t end = amount.end;
    Words whole = amount.whole;
    while (is_separator(letter_at(text, end)) && digits_at(text, end + 1).size() == 3) {
      whole += text.substr(end + 1, 3);
      end += 4;
    }
    const bool torn = is_separator(letter_at(text, end)) && is_digit(letter_at(text, end + 1));
    if (!torn) amount.whole = whole, amount.end = end;
  }
  if (letter_at(text, amount.end) == U'.' || letter_at(text, amount.end) == decimal_separator) {
    amount.decimals = digits_at(text, amount.end + 1);
    if (!amount.decimals.empty()) amount.end += 1 + amount.decimals.size();
  }
  return amount;
}

// The suffix of an ordinal: م, ام or اُم, perhaps behind a half-space, and the same with ین. Returns what of it is kept.
bool take_ordinal(Rewriter& r, View& kept) {
  for (const View suffix : {U"م", U"ام", U"اُم", U"\u200Cم", U"\u200Cام", U"\u200Cاُم", U" ام", U" اُم"}) {
    if (!r.starts_with(suffix)) continue;
    const bool superlative = r.text.substr(r.at + suffix.size()).starts_with(U"ین");
    const size_t length = suffix.size() + (superlative ? 2 : 0);
    if (is_word_letter(r.peek(length))) continue;
    kept = superlative ? U"ین" : U"";
    r.at += length;
    return true;
  }
  return false;
}

bool say_number(Rewriter& r) {
  const char32_t before = r.last_written();
  const bool percent_before = is_percent(r.peek()) && is_digit(r.peek(1));
  const bool may_be_negative = !is_word_letter(before);
  const bool minus = (r.peek() == U'-' || r.peek() == U'−') && may_be_negative;
  const size_t begin = r.at + (percent_before || minus ? 1 : 0);
  if (!is_digit(letter_at(r.text, begin))) return false;

  const Amount amount = amount_at(r.text, begin);
  r.at = amount.end;
  Words words;
  View kept;
  if (amount.decimals.empty() && can_be_one_number(amount.whole) && take_ordinal(r, kept)) {
    words = persian_ordinal(value_of(amount.whole)) + Words(kept);
  } else {
    words = whole_words(amount.whole);
    if (!amount.decimals.empty()) words += U" ممیز " + decimal_words(amount.decimals);
  }
  if (minus) words = U"منفی " + words;
  if (percent_before) words += U" درصد";
  r.say(words);
  return true;
}

}  // namespace

std::u32string text_with_ascii_digits(const std::u32string& text) {
  std::u32string out = text;
  for (char32_t& letter : out) {
    if (letter >= U'٠' && letter <= U'٩') letter = letter - U'٠' + U'0';
    if (letter >= U'۰' && letter <= U'۹') letter = letter - U'۰' + U'0';
  }
  return out;
}

bool expand_persian_number(Rewriter& r) {
  if (is_digit(r.peek()) && (say_date(r) || say_time(r))) return true;
  if (say_number(r)) return true;
  if (!is_percent(r.peek())) return false;
  ++r.at;
  r.say(U"درصد");
  return true;
}

}  // namespace myxtts
