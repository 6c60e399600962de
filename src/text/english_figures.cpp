#include "text/english_figures.h"

#include "text/digits.h"
#include "text/english.h"

#include <algorithm>
#include <optional>

namespace myxtts {
namespace {

using Words = std::u32string;
using View = std::u32string_view;

// Whether a number that ends at `end` continues: 3.5, 3:45, 3/4, 1,000 or a letter.
bool number_goes_on(View text, size_t end) {
  const char32_t next = letter_at(text, end);
  const bool joins = next == U'.' || next == U':' || next == U'/' || next == U',';
  return is_digit(next) || is_word_letter(next) || (joins && is_digit(letter_at(text, end + 1)));
}

// --- months and days

constexpr View months[] = {U"january", U"february", U"march",     U"april",   U"may",      U"june",
                           U"july",    U"august",   U"september", U"october", U"november", U"december"};

struct Found {
  uint64_t value = 0;
  size_t end = 0;          // one past the match; 0 if none
  bool ambiguous = false;  // the month is also another word, or abbreviated
  explicit operator bool() const { return end != 0; }
};

Found month_at(View text, size_t at) {
  size_t end = at;
  while (is_word_letter(letter_at(text, end))) ++end;
  const View word = at < text.size() ? text.substr(at, end - at) : View{};
  for (size_t month = 0; month < std::size(months); ++month) {
    if (word == months[month]) return {month + 1, end, word == U"may" || word == U"march"};
    const bool is_short = word == months[month].substr(0, 3) || (month == 8 && word == U"sept");
    if (is_short) return {month + 1, letter_at(text, end) == U'.' ? end + 1 : end, true};
  }
  return {};
}

size_t ordinal_suffix_length(View text, size_t at) {
  const View suffix = at < text.size() ? text.substr(at, 2) : View{};
  const bool known = suffix == U"st" || suffix == U"nd" || suffix == U"rd" || suffix == U"th";
  const char32_t next = letter_at(text, at + 2);
  return known && !is_word_letter(next) && !is_digit(next) ? 2 : 0;
}

Found day_at(View text, size_t at) {
  const View digits = digits_at(text, at);
  const uint64_t day = digits.size() <= 2 ? value_of(digits) : 0;
  const size_t end = at + digits.size() + ordinal_suffix_length(text, at + digits.size());
  if (day < 1 || day > 31 || number_goes_on(text, end) || letter_at(text, end) == U'%') return {};
  return {day, end};
}

Found year_at(View text, size_t at) {
  const View digits = digits_at(text, at);
  if (digits.size() != 4 || digits[0] == U'0' || number_goes_on(text, at + 4)) return {};
  return {value_of(digits), at + 4};
}

Words month_and_day(uint64_t month, uint64_t day) { return Words(months[month - 1]) + U" " + english_ordinal(day); }

// 3 March 1995. Without the year only if the month is unambiguous ("these 3 may come").
bool say_day_and_month(Rewriter& r) {
  const Found day = day_at(r.text, r.at);
  if (!day || letter_at(r.text, day.end) != U' ') return false;
  const Found month = month_at(r.text, day.end + 1);
  if (!month) return false;
  const size_t gap = letter_at(r.text, month.end) == U',' ? 2 : 1;
  const Found year = letter_at(r.text, month.end + gap - 1) == U' ' ? year_at(r.text, month.end + gap) : Found{};
  if (!year && month.ambiguous) return false;
  Words words = english_ordinal(day.value) + U" of " + Words(months[month.value - 1]);
  if (!r.out.ends_with(U"the ")) words = U"the " + words;
  if (year) words += (gap == 2 ? U", " : U" ") + english_year(year.value);
  r.at = year ? year.end : month.end;
  r.say(words);
  return true;
}

// 1995-03-04 and 3/4/1995 (the month first, unless there is no such month).
bool say_date_in_digits(Rewriter& r) {
  const View first = digits_at(r.text, r.at);
  const char32_t separator = letter_at(r.text, r.at + first.size());
  if (separator != U'-' && separator != U'/') return false;
  const View second = digits_at(r.text, r.at + first.size() + 1);
  const size_t second_end = r.at + first.size() + 1 + second.size();
  if (letter_at(r.text, second_end) != separator) return false;
  const View third = digits_at(r.text, second_end + 1);
  const size_t end = second_end + 1 + third.size();
  if (number_goes_on(r.text, end) || r.last_written() == separator) return false;
  if (letter_at(r.text, end) == U'-' && is_digit(letter_at(r.text, end + 1))) return false;

  uint64_t year = 0, month = 0, day = 0;
  if (separator == U'-' && first.size() == 4 && second.size() == 2 && third.size() == 2) {
    year = value_of(first), month = value_of(second), day = value_of(third);
  } else if (separator == U'/' && first.size() <= 2 && second.size() <= 2 && third.size() == 4) {
    month = value_of(first), day = value_of(second), year = value_of(third);
    if (month > 12) std::swap(month, day);
  }
  if (year < 1000 || month < 1 || month > 12 || day < 1 || day > 31) return false;
  r.at = end;
  r.say(month_and_day(month, day) + U", " + english_year(year));
  return true;
}

// --- times

// "pm", " p.m." and the like after a number; keeps the last point only at the end of the text.
Words take_meridiem(Rewriter& r) {
  const size_t begin = r.peek() == U' ' ? 1 : 0;
  const char32_t half = r.peek(begin);
  if (half != U'a' && half != U'p') return {};
  size_t length = 0;
  if (r.peek(begin + 1) == U'm') length = begin + 2;
  if (r.peek(begin + 1) == U'.' && r.peek(begin + 2) == U'm') length = begin + 3;
  if (length == 0 || is_word_letter(r.peek(length)) || is_digit(r.peek(length))) return {};
  const bool pointed = r.peek(begin + 1) == U'.' && r.peek(length) == U'.';
  if (pointed && r.at + length + 1 < r.text.size()) ++length;
  r.at += length;
  return half == U'a' ? U" a m" : U" p m";
}

bool say_time(Rewriter& r) {
  const std::optional<ClockTime> time = clock_time_at(r.text, r.at);
  if (!time || r.last_written() == U':') return false;
  const auto& [hour, minute, second, end] = *time;
  r.at = end;

  const Words meridiem = take_meridiem(r);
  Words words = english_cardinal(value_of(hour));
  if (value_of(minute) == 0 && meridiem.empty()) words += U" o'clock";
  if (value_of(minute) != 0) words += (minute[0] == U'0' ? U" oh " : U" ") + english_cardinal(value_of(minute));
  if (!second.empty()) {
    words += U" and " + english_cardinal(value_of(second)) + (value_of(second) == 1 ? U" second" : U" seconds");
  }
  r.say(words + meridiem);
  return true;
}

// --- fractions

constexpr struct {
  View written, words;
} fractions[] = {{U"1/2", U"one half"},  {U"1/4", U"one quarter"},  {U"3/4", U"three quarters"},
                 {U"1/3", U"one third"}, {U"2/3", U"two thirds"},   {U"½", U"one half"},
                 {U"¼", U"one quarter"}, {U"¾", U"three quarters"}, {U"⅓", U"one third"},
                 {U"⅔", U"two thirds"}};

// Expands a fraction at `at` and advances, or returns nothing.
View take_fraction(Rewriter& r, size_t at) {
  for (const auto& fraction : fractions) {
    const size_t end = at + fraction.written.size();
    if (at >= r.text.size() || !r.text.substr(at).starts_with(fraction.written)) continue;
    if (is_digit(fraction.written[0]) && (number_goes_on(r.text, end) || letter_at(r.text, end) == U'/')) continue;
    r.at = end;
    return fraction.words;
  }
  return {};
}

// --- amounts

struct Amount {
  Words whole;    // digits without commas
  View decimals;  // digits
  bool grouped = false;
  size_t end = 0;

  // Whether it reads as one number: no leading zeros, not too long.
  std::optional<uint64_t> value() const {
    if (whole.size() > 19 || (whole.size() > 1 && whole[0] == U'0')) return {};
    const uint64_t number = value_of(whole);
    return number <= max_english_cardinal ? std::optional(number) : std::nullopt;
  }
  bool is_plain() const { return !grouped && decimals.empty() && value().has_value(); }
};

Amount amount_at(View text, size_t at) {
  Amount amount;
  amount.whole = digits_at(text, at);
  amount.end = at + amount.whole.size();
  if (amount.whole.size() <= 3 && amount.whole[0] != U'0') {
    size_t end = amount.end;
    Words whole = amount.whole;
    while (letter_at(text, end) == U',' && digits_at(text, end + 1).size() == 3) {
      whole += text.substr(end + 1, 3);
      end += 4;
    }
    const bool torn = letter_at(text, end) == U',' && is_digit(letter_at(text, end + 1));
    if (end != amount.end && !torn) amount.whole = whole, amount.end = end, amount.grouped = true;
  }
  if (letter_at(text, amount.end) == U'.') {
    amount.decimals = digits_at(text, amount.end + 1);
    if (!amount.decimals.empty()) amount.end += 1 + amount.decimals.size();
  }
  return amount;
}

Words whole_words(const Amount& amount) {
  const auto value = amount.value();
  return value ? english_cardinal(*value) : english_digits(amount.whole);
}

Words amount_words(const Amount& amount) {
  return amount.decimals.empty() ? whole_words(amount)
                                 : whole_words(amount) + U" point " + english_digits(amount.decimals);
}

struct Currency {
  char32_t sign;
  View one, many, one_part, many_parts;
};
constexpr Currency currencies[] = {{U'$', U"dollar", U"dollars", U"cent", U"cents"},
                                   {U'£', U"pound", U"pounds", U"penny", U"pence"},
                                   {U'€', U"euro", U"euros", U"cent", U"cents"}};

const Currency* currency_of(char32_t sign) {
  const auto* found = std::ranges::find(currencies, sign, &Currency::sign);
  return found == std::end(currencies) ? nullptr : found;
}

// " million" in "$2 million", also written "$2m".
View take_magnitude(Rewriter& r) {
  static constexpr struct {
    View written, words;
  } magnitudes[] = {{U" thousand", U" thousand"}, {U" million", U" million"}, {U" billion", U" billion"},
                    {U" trillion", U" trillion"}, {U"k", U" thousand"},       {U"m", U" million"},
                    {U"bn", U" billion"},         {U"b", U" billion"}};
  for (const auto& magnitude : magnitudes) {
    if (!r.starts_with(magnitude.written) || is_word_letter(r.peek(magnitude.written.size()))) continue;
    r.at += magnitude.written.size();
    return magnitude.words;
  }
  return {};
}

Words money_words(const Amount& amount, View magnitude, const Currency& currency) {
  const bool in_parts = amount.decimals.size() == 2 && magnitude.empty();
  if (!in_parts) {
    const bool one = amount.whole == U"1" && amount.decimals.empty() && magnitude.empty();
    return amount_words(amount) + Words(magnitude) + U" " + Words(one ? currency.one : currency.many);
  }
  const uint64_t parts = value_of(amount.decimals);
  Words whole = whole_words(amount) + U" " + Words(amount.whole == U"1" ? currency.one : currency.many);
  const Words rest = english_cardinal(parts) + U" " + Words(parts == 1 ? currency.one_part : currency.many_parts);
  if (parts == 0) return whole;
  return amount.whole == U"0" ? rest : whole + U", " + rest;
}

// The currency in "5€" or "5 €", unless it belongs to the number that follows.
const Currency* take_trailing_currency(Rewriter& r) {
  const size_t begin = r.peek() == U' ' ? 1 : 0;
  const Currency* currency = currency_of(r.peek(begin));
  if (currency == nullptr || is_digit(r.peek(begin + 1))) return nullptr;
  r.at += begin + 1;
  return currency;
}

bool take(Rewriter& r, View what) {
  if (!r.starts_with(what) || is_word_letter(r.peek(what.size()))) return false;
  r.at += what.size();
  return true;
}

bool is_decade(const Amount& amount) {
  const uint64_t value = amount.is_plain() ? *amount.value() : 0;
  return value % 10 == 0 && ((value >= 1100 && value <= 2099) || (value >= 20 && value <= 90));
}

// A number without a currency before it, and what may follow it.
Words plain_words(Rewriter& r, const Amount& amount, bool negative) {
  const bool plain = amount.is_plain();
  if (const size_t suffix = ordinal_suffix_length(r.text, r.at);
      suffix != 0 && amount.decimals.empty() && amount.value()) {
    r.at += suffix;
    return english_ordinal(*amount.value());
  }
  if (is_decade(amount) && (take(r, U"s") || take(r, U"'s"))) return english_decade(*amount.value());
  if (plain && *amount.value() >= 1 && *amount.value() <= 12) {
    if (const Words meridiem = take_meridiem(r); !meridiem.empty()) return amount_words(amount) + meridiem;
  }
  if (const Currency* currency = take_trailing_currency(r)) return money_words(amount, {}, *currency);
  if (amount.decimals.empty()) {
    if (const View fraction = take_fraction(r, r.peek() == U' ' ? r.at + 1 : r.at); !fraction.empty()) {
      return amount_words(amount) + U" and " + Words(fraction);
    }
  }
  if (take(r, U"ft.") || take(r, U" ft.")) return amount_words(amount) + (amount.whole == U"1" ? U" foot" : U" feet");
  const bool percent = r.peek() == U'%' || (r.peek() == U' ' && r.peek(1) == U'%');
  const bool year = plain && amount.whole.size() == 4 && !negative && !percent;
  return year ? english_year(*amount.value()) : amount_words(amount);
}

bool say_amount(Rewriter& r) {
  const char32_t before = r.last_written();
  const bool may_be_negative = before == 0 || before == U' ' || before == U'(' || before == U'"' || before == U'\'';
  const bool negative = r.peek() == U'-' && may_be_negative;
  const Currency* currency = currency_of(r.peek(negative ? 1 : 0));
  const size_t begin = r.at + (negative ? 1 : 0) + (currency != nullptr ? 1 : 0);
  if (!is_digit(letter_at(r.text, begin))) return false;

  const Amount amount = amount_at(r.text, begin);
  r.at = amount.end;
  Words words = negative ? U"minus " : U"";
  words += currency != nullptr ? money_words(amount, take_magnitude(r), *currency) : plain_words(r, amount, negative);
  while (r.peek() == U'.' && is_digit(r.peek(1))) {  // 1.2.3
    const View digits = digits_at(r.text, r.at + 1);
    words += U" point " + english_digits(digits);
    r.at += 1 + digits.size();
  }
  if (r.peek() == U'-' && is_digit(r.peek(1))) {  // 3-5
    ++r.at;
    words += U" - ";
  }
  r.say(words);
  return true;
}

bool say_bare_decimals(Rewriter& r) {
  if (r.peek() != U'.' || !is_digit(r.peek(1)) || is_word_letter(r.last_written())) return false;
  const View digits = digits_at(r.text, r.at + 1);
  r.at += 1 + digits.size();
  r.say(U"point " + english_digits(digits));
  return true;
}

}  // namespace

bool expand_english_date(Rewriter& r) {
  const Found month = month_at(r.text, r.at);
  if (!month || letter_at(r.text, month.end) != U' ') return false;
  const Found day = day_at(r.text, month.end + 1);
  if (!day) {
    const Found year = year_at(r.text, month.end + 1);
    if (!year) return false;
    r.at = year.end;
    r.say(Words(months[month.value - 1]) + U" " + english_year(year.value));
    return true;
  }
  const size_t gap = letter_at(r.text, day.end) == U',' ? 2 : 1;
  const Found year = letter_at(r.text, day.end + gap - 1) == U' ' ? year_at(r.text, day.end + gap) : Found{};
  Words words = month_and_day(month.value, day.value);
  if (year) words += (gap == 2 ? U", " : U" ") + english_year(year.value);
  r.at = year ? year.end : day.end;
  r.say(words);
  return true;
}

bool expand_english_number(Rewriter& r) {
  if (is_digit(r.peek()) && (say_date_in_digits(r) || say_time(r) || say_day_and_month(r))) return true;
  if (r.last_written() != U'/') {
    if (const View fraction = take_fraction(r, r.at); !fraction.empty()) {
      r.say(fraction);
      return true;
    }
  }
  return say_amount(r) || say_bare_decimals(r);
}

}  // namespace myxtts
