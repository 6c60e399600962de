#include "base/error.h"
#include "synth/export/readme.h"
#include "synth/voice_description.h"
#include "text/cleaner.h"
#include "text/sentences.h"
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

TEST(PiecesOfText, are_the_sentences_of_ordinary_texts) {
  const VoiceDescription voice;
  const std::string text =
      "Mr. J. Smith paid $3.50 on 3 May 1984! \"Why?\" he asked... and left; etc. The U.S. Army, e.g. its No. 5, came.";
  EXPECT_EQ(pieces_of_text(voice, text, "en"), split_sentences(text, 200));
  EXPECT_EQ(pieces_of_text(voice, "سلام! امروز ۱۲ مرداد است. خوبی؟", "fa"),
            split_sentences("سلام! امروز ۱۲ مرداد است. خوبی؟", 200));
}

TEST(PiecesOfText, are_short_also_when_numbers_are_words) {
  const VoiceDescription voice;
  for (const auto& [number, language] : {std::pair("777,777,777 ", "en"), {"۷۷۷٬۷۷۷٬۷۷۷ ", "fa"}}) {
    std::string text, joined;
    for (int i = 0; i < 16; ++i) text += number;
    for (const std::string& piece : pieces_of_text(voice, text, language)) {
      EXPECT_LE(decode_utf8(clean_text(piece, language)).size(), 200U) << piece;
      joined += (joined.empty() ? "" : " ") + piece;
    }
    EXPECT_EQ(joined, clean_text(text, language)) << "nothing is left out";
  }
}

// As a checkpoint may have them that somebody else made.
TEST(VoiceDescription, has_no_language_that_a_shell_or_python_could_take_for_more) {
  VoiceDescription voice;
  for (const char* language : {"en", "pt-br", "en_GB", "en+f3", "zh-latn-pinyin"}) {
    voice.config.data.language = language;
    EXPECT_EQ(VoiceDescription::from_metadata(voice.to_metadata(), "a voice").config.data.language, language);
  }
  for (const char* language : {"-en", "en\"; import os #", "en x", "../en", "é", "a\nb"}) {
    voice.config.data.language = "en", voice.speakers = {"a"}, voice.languages = {"en", language};
    EXPECT_THROW(VoiceDescription::from_metadata(voice.to_metadata(), "a voice"), Error) << language;
    voice.speakers.clear(), voice.languages.clear(), voice.config.data.language = language;
    EXPECT_THROW(VoiceDescription::from_metadata(voice.to_metadata(), "a voice"), Error) << language;
  }
}

TEST(ExportedScript, holds_the_language_as_a_string_and_nothing_more) {
  EXPECT_NE(phonemes_script("fa").find("\nLANGUAGE = \"fa\"\n"), std::string::npos);
  EXPECT_NE(phonemes_script("a\"\nimport os").find("\nLANGUAGE = \"a\\\"\\nimport os\"\n"), std::string::npos);
}

}  // namespace
}  // namespace myxtts
