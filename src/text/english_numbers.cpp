#include "text/digits.h"
#include "text/english.h"

namespace myxtts {
namespace {

constexpr std::u32string_view small[] = {U"zero",    U"one",     U"two",       U"three",    U"four",
                                         U"five",    U"six",     U"seven",     U"eight",    U"nine",
                                         U"ten",     U"eleven",  U"twelve",    U"thirteen", U"fourteen",
                                         U"fifteen", U"sixteen", U"seventeen", U"eighteen", U"nineteen"};
constexpr std::u32string_view tens[] = {U"",      U"",      U"twenty",  U"thirty", U"forty",
                                        U"fifty", U"sixty", U"seventy", U"eighty", U"ninety"};
constexpr struct {
  uint64_t value;
  std::u32string_view name;
} scales[] = {{1'000'000'000'000'000'000, U"quintillion"},
              {1'000'000'000'000'000, U"quadrillion"},
              {1'000'000'000'000, U"trillion"},
              {1'000'000'000, U"billion"},
              {1'000'000, U"million"},
              {1'000, U"thousand"},
              {100, U"hundred"}};

constexpr struct {
  std::u32string_view cardinal, ordinal;
} irregular_ordinals[] = {{U"one", U"first"},    {U"two", U"second"}, {U"three", U"third"},   {U"five", U"fifth"},
                          {U"eight", U"eighth"}, {U"nine", U"ninth"}, {U"twelve", U"twelfth"}};

// Where the last word begins: after the last space or hyphen.
size_t last_word(const std::u32string& words) {
  const size_t gap = words.find_last_of(U" -");
  return gap == std::u32string::npos ? 0 : gap + 1;
}

// ninety, but ninetieth and nineties.
std::u32string with_vowel_before_ending(const std::u32string& words) {
  return words.ends_with(U'y') ? words.substr(0, words.size() - 1) + U"ie" : words;
}

}  // namespace

std::u32string english_cardinal(uint64_t number) {
  if (number < 20) return std::u32string(small[number]);
  if (number < 100) {
    const std::u32string ten(tens[number / 10]);
    return number % 10 == 0 ? ten : ten + U"-" + std::u32string(small[number % 10]);
  }
  for (const auto& scale : scales) {
    if (number < scale.value) continue;
    std::u32string words = english_cardinal(number / scale.value) + U" " + std::u32string(scale.name);
    if (number % scale.value != 0) (words += U' ') += english_cardinal(number % scale.value);
    return words;
  }
  return {};
}

std::u32string english_ordinal(uint64_t number) {
  const std::u32string words = english_cardinal(number);
  const size_t begin = last_word(words);
  for (const auto& irregular : irregular_ordinals) {
    if (words.substr(begin) == irregular.cardinal) return words.substr(0, begin) + std::u32string(irregular.ordinal);
  }
  return with_vowel_before_ending(words) + U"th";
}

std::u32string english_year(uint64_t year) {
  const bool in_pairs = (year >= 1100 && year <= 1999) || (year >= 2010 && year <= 2099);
  if (!in_pairs) return english_cardinal(year);
  const std::u32string century = english_cardinal(year / 100);
  if (year % 100 == 0) return century + U" hundred";
  return century + (year % 100 < 10 ? U" oh " : U" ") + english_cardinal(year % 100);
}

std::u32string english_decade(uint64_t decade) { return with_vowel_before_ending(english_year(decade)) + U"s"; }

std::u32string english_digits(std::u32string_view digits) { return spoken_digits(digits, small); }

}  // namespace myxtts
