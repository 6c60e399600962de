#include "text/vocabulary.h"

#include "base/error.h"
#include "text/utf8.h"

#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

Vocabulary vocabulary_of(std::string_view text) {
  const std::vector<char32_t> letters = decode_utf8(text);
  return Vocabulary(std::set<char32_t>(letters.begin(), letters.end()));
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(VocabularyTest, numbers_follow_the_sorted_characters) {
  const Vocabulary vocabulary({U'c', U'a', U'b'});
  EXPECT_EQ(vocabulary.size(), 5U);
  EXPECT_EQ(vocabulary.encode("abca", false), (std::vector<uint16_t>{2, 3, 4, 2}));
}

TEST(VocabularyTest, blanks_stand_before_between_and_after) {
  const Vocabulary vocabulary({U'a', U'b'});
  EXPECT_EQ(vocabulary.encode("ab", true), (std::vector<uint16_t>{1, 2, 1, 3, 1}));
  EXPECT_EQ(vocabulary.encode("", true), (std::vector<uint16_t>{1}));
  EXPECT_TRUE(vocabulary.encode("", false).empty());
}

TEST(VocabularyTest, texts_survive_the_way_there_and_back) {
  for (const std::string text :
       {"hello, world", "می‌خواهم کتاب‌ها را بخوانم؛ خُب؟", "həlˈoʊ ðˈɛɹ", "日本 😀"}) {
    const Vocabulary vocabulary = vocabulary_of(text);
    const Vocabulary loaded = Vocabulary::from_json(vocabulary.to_json(), "vocabulary.json");
    for (const bool blanks : {false, true}) {
      const std::vector<uint16_t> tokens = vocabulary.encode(text, blanks);
      EXPECT_EQ(loaded.encode(text, blanks), tokens);
      EXPECT_EQ(loaded.decode(tokens), text);
    }
  }
}

TEST(VocabularyTest, padding_is_left_out_and_a_foreign_token_is_refused) {
  const Vocabulary vocabulary({U'a'});
  EXPECT_EQ(vocabulary.decode(std::vector<uint16_t>{2, 1, 2, 0, 0}), "aa");
  EXPECT_THROW(vocabulary.decode(std::vector<uint16_t>{3}), Error);
}

TEST(VocabularyTest, an_unknown_character_is_named) {
  const Vocabulary vocabulary({U'a'});
  EXPECT_NE(error_of([&] { vocabulary.encode("aAB", false); }).find("'A' (U+0041)"), std::string::npos);
  EXPECT_NE(error_of([&] { vocabulary.encode("a\u200C", false); }).find("(U+200C)"), std::string::npos);
}

TEST(VocabularyTest, the_saved_form_is_plain_json) {
  EXPECT_EQ(nlohmann::json::parse(Vocabulary({U'b', U'a'}).to_json()),
            nlohmann::json::parse(R"({"version":1,"symbols":["a","b"]})"));
}

TEST(VocabularyTest, a_bad_file_is_rejected_by_name) {
  for (const std::string text :
       {"", "[]", "{", R"({"symbols":["a"]})", R"({"version":2,"symbols":["a"]})", R"({"version":"1","symbols":["a"]})",
        R"({"version":1})", R"({"version":1,"symbols":"ab"})", R"({"version":1,"symbols":["ab"]})",
        R"({"version":1,"symbols":[""]})", R"({"version":1,"symbols":[7]})", R"({"version":1,"symbols":["b","a"]})",
        R"({"version":1,"symbols":["a","a"]})", R"({"version":1,"symbols":["a"],"symbols":["b"]})"}) {
    const std::string error = error_of([&] { Vocabulary::from_json(text, "my_voice.json"); });
    EXPECT_NE(error.find("my_voice.json is not a vocabulary"), std::string::npos) << text << " gave " << error;
  }
}

// Copying or comparing values that are nested this deeply overflows the stack.
TEST(VocabularyTest, a_deeply_nested_file_is_rejected) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  for (const std::string& text : {R"({"version":1,"symbols":)" + deep + "}", R"({"version":)" + deep + "}"}) {
    EXPECT_NE(error_of([&] { Vocabulary::from_json(text, "deep.json"); }).find("deep.json is not"), std::string::npos);
  }
}

TEST(VocabularyTest, more_characters_than_numbers_are_refused) {
  std::set<char32_t> symbols;
  for (char32_t symbol = 0x10000; symbol < 0x20000; ++symbol) symbols.insert(symbol);
  EXPECT_THROW(Vocabulary{symbols}, Error);
}

}  // namespace
}  // namespace myxtts
