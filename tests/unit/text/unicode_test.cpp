#include "text/unicode.h"

#include "base/error.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {

TEST(Unicode, composition_gives_the_one_canonical_form) {
  const struct {
    const char32_t* written;
    const char32_t* composed;
    const char* what;
  } cases[] = {
      {U"plain ASCII", U"plain ASCII", "ASCII stays"},
      {U"e\u0301", U"\u00E9", "e and acute"},
      {U"\u00E9", U"\u00E9", "é stays"},
      {U"\u212B", U"\u00C5", "the ångström sign is an Å"},
      {U"A\u030A", U"\u00C5", "A and ring"},
      {U"\u2126", U"\u03A9", "the ohm sign is an omega"},
      {U"\u1100\u1161", U"\uAC00", "Hangul of two parts"},
      {U"\u1100\u1161\u11A8", U"\uAC01", "Hangul of three parts"},
      {U"\uAC00\u11A8", U"\uAC01", "a Hangul syllable takes its last consonant"},
      {U"\uAC00\u11A7", U"\uAC00\u11A7", "but only a real one"},
      {U"\u11A7\uAC00\u11A7e\u0301\u11A7", U"\u11A7\uAC00\u11A7\u00E9\u11A7", "and what follows is composed"},
      {U"a\u0302\u0301", U"\u1EA5", "two marks above, in two steps"},
      {U"a\u0301\u0323", U"\u1EA1\u0301", "the mark below goes first"},
      {U"a\u0327\u0301", U"\u00E1\u0327", "a mark of another class does not block"},
      {U"a\u0305\u0301", U"a\u0305\u0301", "one of the same class does"},
      {U"\u0651\u064E", U"\u064E\u0651", "shadda and fatha get their order"},
      {U"\u0645\u0651\u064E", U"\u0645\u064E\u0651", "also on a letter"},
      {U"\u0627\u0653", U"\u0622", "alef and madda"},
      {U"\u064A\u0654", U"\u0626", "yeh and hamza"},
      {U"\u0958", U"\u0915\u093C", "excluded from composition"},
      {U"\u0915\u093C", U"\u0915\u093C", "and stays apart"},
      {U"\u0344", U"\u0308\u0301", "a mark that is two"},
      {U"\U0001D15E", U"\U0001D157\U0001D165", "a musical note beyond 16 bits"},
      {U"\uFB01", U"\uFB01", "a ligature is not canonical and stays"},
  };
  for (const auto& c : cases) EXPECT_TRUE(to_nfc(std::u32string(c.written)) == c.composed) << c.what;
}

TEST(Unicode, utf8_is_composed_too_and_refused_when_broken) {
  EXPECT_EQ(to_nfc("cafe\u0301"), "café");
  EXPECT_EQ(to_nfc(""), "");
  EXPECT_THROW(to_nfc("caf\xC3"), Error);
}

TEST(Unicode, a_very_long_run_of_marks_is_put_in_order) {
  std::u32string marks(100000, U'\u0301');
  for (size_t i = 0; i < marks.size(); i += 2) marks[i] = U'\u0323';
  const std::u32string composed = to_nfc(U"a" + marks);
  EXPECT_EQ(composed[0], U'\u1EA1');
  EXPECT_EQ(composed.back(), U'\u0301');
}

TEST(Unicode, what_no_text_should_hold_is_told_apart) {
  for (const char32_t letter : std::u32string(U"\t\n aé‌پٔ日😀。\u200D\u0301")) EXPECT_TRUE(is_text(letter));
  for (const uint32_t code : {0x00U, 0x0DU, 0x1BU, 0x7FU, 0x85U, 0xD800U, 0xDFFFU, 0xE000U, 0xF8FFU, 0xFFFDU, 0xFFFEU,
                              0xFDD0U, 0x0378U, 0xF0000U, 0x10FFFFU, 0x110000U}) {
    EXPECT_FALSE(is_text(code)) << std::hex << code;
  }
}

TEST(Unicode, presentation_forms_have_letters) {
  EXPECT_TRUE(presentation_form_letters(U'ﻻ') == U"لا");
  EXPECT_TRUE(presentation_form_letters(U'ﮐ') == U"ک");
  EXPECT_TRUE(presentation_form_letters(U'ﷲ') == U"الله");
  EXPECT_TRUE(presentation_form_letters(U'ﱠ') == U"\u064E\u0651");
  EXPECT_TRUE(presentation_form_letters(U'a').empty());
  EXPECT_TRUE(presentation_form_letters(U'ک').empty());
}

}  // namespace
}  // namespace myxtts
