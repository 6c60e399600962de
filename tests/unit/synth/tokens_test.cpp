#include "base/error.h"
#include "synth/voice_description.h"
#include "text/utf8.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {

VoiceDescription voice_of(const char* symbols) {
  const std::vector<char32_t> letters = decode_utf8(symbols);
  VoiceDescription voice;
  voice.vocabulary = Vocabulary({letters.begin(), letters.end()});
  voice.config.data.text_tokens = "characters", voice.config.data.blank_tokens = false;
  return voice;
}

std::string spoken(const VoiceDescription& voice, const std::string& text) {
  return voice.vocabulary.decode(tokens_of_text(voice, text));
}

TEST(TokensOfText, an_unknown_mark_becomes_the_nearest_known_one) {
  EXPECT_EQ(spoken(voice_of("ab ,."), "a; b!"), "a, b.");
  EXPECT_EQ(spoken(voice_of("ab ,.;!"), "a; b!"), "a; b!");
  EXPECT_EQ(spoken(voice_of("ab "), "a; b!"), "a b");
  EXPECT_EQ(spoken(voice_of("اب ،."), "ا؛ ب؟"), "ا، ب.");
}

TEST(TokensOfText, other_unknown_characters_are_refused) { EXPECT_THROW(spoken(voice_of("ab ,."), "c"), Error); }

}  // namespace
}  // namespace myxtts
