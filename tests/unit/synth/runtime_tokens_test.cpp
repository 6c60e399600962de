#include "synth/export/runtime_tokens.h"

#include <map>
#include <sstream>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

// As sherpa-onnx reads them: a line of a number alone is the space's.
std::map<std::string, int> read_tokens(const std::string& text) {
  std::map<std::string, int> numbers;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.rfind(' ');
    EXPECT_TRUE(
        numbers.emplace(line.substr(0, space).empty() ? " " : line.substr(0, space), std::stoi(line.substr(space + 1)))
            .second)
        << line << " is there twice";
  }
  return numbers;
}

TEST(RuntimeTokens, have_the_numbers_of_the_vocabulary) {
  const Vocabulary vocabulary({U' ', U'a', U'ɐ', U'ː'});
  const std::map<std::string, int> numbers = read_tokens(runtime_tokens(vocabulary));
  for (const char* symbol : {" ", "a", "ɐ", "ː"}) {
    EXPECT_EQ(numbers.at(symbol), vocabulary.encode(symbol, false).front()) << symbol;
  }
  for (const char* unused : {"_", "^", "$"}) EXPECT_EQ(numbers.at(unused), Vocabulary::padding);
}

TEST(RuntimeTokens, give_unknown_marks_the_nearest_number_and_none_without_any) {
  const Vocabulary vocabulary({U'a', U'.', U','});
  const std::map<std::string, int> numbers = read_tokens(runtime_tokens(vocabulary));
  EXPECT_EQ(numbers.at("?"), numbers.at("."));
  EXPECT_EQ(numbers.at(";"), numbers.at(","));
  EXPECT_FALSE(read_tokens(runtime_tokens(Vocabulary({U'a'}))).contains("."));
}

TEST(RuntimeTokens, find_a_composed_phoneme_by_its_letter_unless_the_voice_has_that_letter) {
  const std::map<std::string, int> alone = read_tokens(runtime_tokens(Vocabulary({U'ç', U'ɐ'})));
  EXPECT_EQ(alone.at("c"), alone.at("ç"));
  const std::map<std::string, int> both = read_tokens(runtime_tokens(Vocabulary({U'c', U'ç'})));
  EXPECT_NE(both.at("c"), both.at("ç"));
}

}  // namespace
}  // namespace myxtts
