#include "text/clauses.h"

#include "base/error.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {

using Clauses = std::vector<Clause>;

TEST(Clauses, end_at_punctuation_before_a_space_or_the_end) {
  EXPECT_EQ(split_clauses("Wait, please. Really?!"), (Clauses{{"Wait", ','}, {"please", '.'}, {"Really", '?'}}));
  EXPECT_EQ(split_clauses("no mark"), (Clauses{{"no mark", 0}}));
  EXPECT_EQ(split_clauses("at 10:30 it was 3.5, not more"), (Clauses{{"at 10:30 it was 3.5", ','}, {"not more", 0}}));
  EXPECT_EQ(split_clauses("he said \"go.\" and \"stop!\""), (Clauses{{"he said \"go", '.'}, {"and \"stop", '!'}}));
  EXPECT_EQ(split_clauses("a—b – c"), (Clauses{{"a", ','}, {"b", ','}, {"c", 0}}));
}

TEST(Clauses, other_scripts_have_the_same_marks) {
  EXPECT_EQ(split_clauses("سلام، دنیا؛ خوبی؟ بله."),
            (Clauses{{"سلام", ','}, {"دنیا", ';'}, {"خوبی", '?'}, {"بله", '.'}}));
  EXPECT_EQ(split_clauses("你好，世界。"), (Clauses{{"你好", ','}, {"世界", '.'}}));
}

TEST(Clauses, without_words_are_left_out) {
  for (const char* nothing : {"", "   ", "...", "?!", " . , ", "\n"})
    EXPECT_TRUE(split_clauses(nothing).empty()) << nothing;
  EXPECT_EQ(split_clauses("... well ..."), (Clauses{{"well", '.'}}));
}

TEST(Clauses, of_text_that_is_not_utf8_are_refused) { EXPECT_THROW(split_clauses("a\xFF"), Error); }

}  // namespace
}  // namespace myxtts
