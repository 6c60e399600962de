#include "text/digits.h"
#include "text/persian.h"

namespace myxtts {
namespace {

constexpr std::u32string_view small[] = {U"صفر",    U"یک",     U"دو",     U"سه",   U"چهار",  U"پنج",    U"شش",
                                         U"هفت",    U"هشت",    U"نه",     U"ده",   U"یازده", U"دوازده", U"سیزده",
                                         U"چهارده", U"پانزده", U"شانزده", U"هفده", U"هجده",  U"نوزده"};
constexpr std::u32string_view tens[] = {U"", U"", U"بیست", U"سی", U"چهل", U"پنجاه", U"شصت", U"هفتاد", U"هشتاد", U"نود"};
constexpr std::u32string_view hundreds[] = {U"",      U"صد",   U"دویست", U"سیصد",  U"چهارصد",
                                            U"پانصد", U"ششصد", U"هفتصد", U"هشتصد", U"نهصد"};
constexpr struct {
  uint64_t value;
  std::u32string_view name;
} scales[] = {{1'000'000'000'000'000, U"کوادریلیون"},
              {1'000'000'000'000, U"تریلیون"},
              {1'000'000'000, U"میلیارد"},
              {1'000'000, U"میلیون"},
              {1'000, U"هزار"}};

std::u32string with_rest(const std::u32string& words, uint64_t rest) {
  return rest == 0 ? words : words + U" و " + persian_cardinal(rest);
}

}  // namespace

std::u32string persian_cardinal(uint64_t number) {
  if (number < 20) return std::u32string(small[number]);
  if (number < 100) return with_rest(std::u32string(tens[number / 10]), number % 10);
  if (number < 1000) return with_rest(std::u32string(hundreds[number / 100]), number % 100);
  for (const auto& scale : scales) {
    if (number < scale.value) continue;
    const uint64_t count = number / scale.value;
    const bool only_the_name = count == 1 && scale.value == 1000;  // هزار, but یک میلیون
    std::u32string words = only_the_name ? U"" : persian_cardinal(count) + U" ";
    return with_rest(words + std::u32string(scale.name), number % scale.value);
  }
  return {};
}

std::u32string persian_ordinal(uint64_t number) {
  const std::u32string words = persian_cardinal(number);
  if (words.ends_with(U"سه")) return words.substr(0, words.size() - 1) + U"وم";
  if (words.ends_with(U"سی")) return words + U"\u200Cام";
  return words + U"م";
}

std::u32string persian_digits(std::u32string_view digits) { return spoken_digits(digits, small); }

}  // namespace myxtts
