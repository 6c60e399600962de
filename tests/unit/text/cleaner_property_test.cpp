#include "base/error.h"
#include "base/random.h"
#include "text/cleaner.h"
#include "text/utf8.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {

// Anything at all: every plane, and often what the cleaners act on.
char32_t random_letter(Random& random) {
  static const std::u32string lively =
      U"0123456789012345678901234567890123456789.,:;/-$£€%&#'\"()  ½stndrdthamp.mrdrstnoftAZÉİʼ’–—…٪٬٫۰۱۲۳۹٠٥"
      U"سیامكيىةأإٱآئؤهۀـَُِّٰٕٓٔ\u200C\u200C\u200D\u200B\u00AD\u200F\u00A0\u0301\u0323\u0331ﻻﷲﷺﱠﹷ−";
  if (random.below(10) < 7) return lively[random.below(lively.size())];
  const char32_t bounds[] = {0x80, 0x250, 0x700, 0x3000, 0x110000};
  const auto letter = static_cast<char32_t>(random.below(bounds[random.below(5)]));
  return letter >= 0xD800 && letter <= 0xDFFF ? U' ' : letter;
}

std::string random_text(Random& random) {
  static const char* const pieces[] = {"mr.",   "e.g.", "no. ", "march ", "3 may ",    "1995", " p.m.",
                                       "12:30", "st.",  "1/2",  "$1.50",  "۱۴۰۲/۵/۱۲", "۳ام",  " ft.",
                                       "1,000", "the ", "--",   "--",     "etc."};
  std::string text;
  for (uint64_t i = 0, length = random.below(40); i < length; ++i) {
    if (random.below(6) == 0) {
      text += pieces[random.below(std::size(pieces))];
    } else {
      text += encode_utf8({random_letter(random)});
    }
  }
  return text;
}

TEST(Cleaner, any_text_is_cleaned_and_a_clean_one_stays) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(Random::mix(seed + 1));
    const std::string text = random_text(random);
    for (const char* language : {"en", "fa", "xx"}) {
      std::string once;
      ASSERT_NO_THROW(once = clean_text(text, language)) << "seed " << seed << ": " << text;
      ASSERT_EQ(clean_text(once, language), once) << language << ", seed " << seed << ": " << text;
      EXPECT_EQ(once.find("  "), std::string::npos);
      const bool has_digits = once.find_first_of("0123456789") != std::string::npos;
      EXPECT_TRUE(!has_digits || std::string_view(language) == "xx") << once;
    }
  }
}

TEST(Cleaner, what_is_not_utf8_is_refused) {
  for (const char* language : {"en", "fa", "xx"}) EXPECT_THROW(clean_text("a\xFF", language), Error);
}

TEST(Cleaner, a_very_long_text_is_no_trouble) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "1,234.5 mr. ۱۲۳ ";
  EXPECT_GT(clean_text(text, "en").size(), text.size());
  EXPECT_GT(clean_text(text, "fa").size(), text.size());
  EXPECT_GT(clean_text(std::string(100000, '7'), "en").size(), 100000U);
}

}  // namespace
}  // namespace myxtts
