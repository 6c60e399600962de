#include "text/sentences.h"

#include "base/error.h"
#include "base/random.h"
#include "text/utf8.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {

using Pieces = std::vector<std::string>;

constexpr size_t any_length = 1000;

TEST(Sentences, english_ends_at_its_signs) {
  EXPECT_EQ(split_sentences("Hello there. How are you? Fine!", any_length),
            (Pieces{"Hello there.", "How are you?", "Fine!"}));
  EXPECT_EQ(split_sentences("all in lower case. no capitals at all. ok", any_length),
            (Pieces{"all in lower case.", "no capitals at all.", "ok"}));
  EXPECT_EQ(split_sentences("One line\nanother  line\r\n\r\n", any_length), (Pieces{"One line", "another line"}));
  EXPECT_EQ(split_sentences("He said: \"Go.\" She went. (So did he!) End", any_length),
            (Pieces{"He said: \"Go.\"", "She went.", "(So did he!)", "End"}));
  EXPECT_EQ(split_sentences("Really?! Yes!!! No", any_length), (Pieces{"Really?!", "Yes!!!", "No"}));
}

TEST(Sentences, points_within_a_sentence_do_not_end_it) {
  for (const char* one :
       {"Pi is 3.14 and v1.2.3 is out.", "Dr. Smith met Mr. Jones at St. Paul's.", "Some, e.g. apples, i.e. fruit.",
        "J. R. R. Tolkien wrote it.", "It is 5 p.m. in the U.S. today.", "Rooms, halls, etc. were full.",
        "See No. 5 on www.example.com/?a=1 now.", "1. First of all", "Well... maybe not.", "Well… maybe not.",
        "\"What?\" he asked."}) {
    EXPECT_EQ(split_sentences(one, any_length), Pieces{one});
  }
  EXPECT_EQ(split_sentences("We left at 5 p.m. Then it rained.", any_length),
            (Pieces{"We left at 5 p.m.", "Then it rained."}));
  EXPECT_EQ(split_sentences("Well... No. I will not.", any_length), (Pieces{"Well...", "No.", "I will not."}));
}

TEST(Sentences, persian_ends_at_its_signs) {
  EXPECT_EQ(split_sentences("سلام. حال شما چطور است؟ خوبم! ممنون", any_length),
            (Pieces{"سلام.", "حال شما چطور است؟", "خوبم!", "ممنون"}));
  EXPECT_EQ(split_sentences("آمدی؟خوش آمدی!بنشین.", any_length), (Pieces{"آمدی؟", "خوش آمدی!", "بنشین."}));
  EXPECT_EQ(split_sentences("در سال ۳۰۰ ق.م. او زنده بود… بعد رفت.", any_length),
            (Pieces{"در سال ۳۰۰ ق.م. او زنده بود…", "بعد رفت."}));
  EXPECT_EQ(split_sentences("عدد ۳.۱۴ را می‌دانم. «بله.» گفت", any_length),
            (Pieces{"عدد ۳.۱۴ را می‌دانم.", "«بله.»", "گفت"}));
}

TEST(Sentences, wide_signs_need_no_space) {
  EXPECT_EQ(split_sentences("你好。你好吗？好！", any_length), (Pieces{"你好。", "你好吗？", "好！"}));
}

TEST(Sentences, what_is_too_long_is_cut_at_commas_then_at_spaces) {
  EXPECT_EQ(split_sentences("one two, three four five", 15), (Pieces{"one two,", "three four five"}));
  EXPECT_EQ(split_sentences("one two three four five", 10), (Pieces{"one two", "three four", "five"}));
  EXPECT_EQ(split_sentences("pay 1,000 at 8:30 sharp", 12), (Pieces{"pay 1,000 at", "8:30 sharp"}));
  EXPECT_EQ(split_sentences("a incomprehensible", 6), (Pieces{"a", "incomp", "rehens", "ible"}));
  EXPECT_EQ(split_sentences("کتاب را خواندم، سپس خوابیدم", 20), (Pieces{"کتاب را خواندم،", "سپس خوابیدم"}));
  EXPECT_EQ(split_sentences("می\u200Cروم می\u200Cروم", 8), (Pieces{"می\u200Cروم", "می\u200Cروم"}));
}

TEST(Sentences, nothing_to_say_is_no_sentence_of_its_own) {
  EXPECT_EQ(split_sentences("", 10), Pieces{});
  EXPECT_EQ(split_sentences(" \n\t ", 10), Pieces{});
  EXPECT_EQ(split_sentences("... Hello. ***", any_length), (Pieces{"... Hello. ***"}));
  EXPECT_EQ(split_sentences("...", any_length), (Pieces{"..."}));
  EXPECT_THROW(split_sentences("a\xFF", 10), Error);
}

std::string without_spaces(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    if (letter != ' ' && letter != '\n' && letter != '\t') out += letter;
  }
  return out;
}

TEST(Sentences, of_any_text_nothing_is_lost_and_none_is_too_long) {
  static const char* const pieces[] = {"a",  "Word", "می\u200Cروم", "سلام",  " ",  " ",  " ",      "\n",
                                       ". ", ".",    "!",           "؟ ",    "، ", ", ", "…",      "。",
                                       "；", "3.14", "Dr. ",        "e.g. ", "\"", "»",  "\u064E", "\t"};
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    Random random(Random::mix(seed));
    std::string text;
    for (uint64_t i = 0, count = random.below(60); i < count; ++i) text += pieces[random.below(std::size(pieces))];
    const size_t longest = 1 + random.below(30);
    std::string joined;
    for (const std::string& piece : split_sentences(text, longest)) {
      ASSERT_FALSE(piece.empty());
      ASSERT_NE(piece.front(), ' ');
      ASSERT_NE(piece.back(), ' ');
      ASSERT_LE(decode_utf8(piece).size(), longest) << text;
      joined += piece;
    }
    ASSERT_EQ(without_spaces(joined), without_spaces(text)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace myxtts
