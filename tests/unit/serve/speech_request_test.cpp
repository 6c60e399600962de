#include "serve/speech_request.h"

#include "base/error.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {

SpeechRequest parsed(const std::string& body, const RequestLimits& limits = {}) {
  return parse_speech_request(body, limits);
}

// What a client is told; empty if the request is taken.
std::string refusal(const std::string& body, const RequestLimits& limits = {}) {
  try {
    parse_speech_request(body, limits);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_input);
    EXPECT_FALSE(error.way_out().empty()) << error.what();
    return error.sentence();
  }
  return {};
}

TEST(SpeechRequest, needs_nothing_but_a_text) {
  const SpeechRequest request = parsed(R"({"input": "Good morning."})");
  EXPECT_EQ(request.input, "Good morning.");
  EXPECT_TRUE(request.voice.empty() && request.language.empty() && request.reference.empty());
  EXPECT_TRUE(request.format == SoundFormat::wav && !request.stream && request.speed == 1);
  EXPECT_FALSE(request.seed || request.steps || request.temperature || request.guidance);
}

TEST(SpeechRequest, has_every_field) {
  const SpeechRequest request = parsed(
      R"({"model": "tts-1", "input": "سلام", "voice": "anna", "response_format": "pcm", "speed": 1.5, "language": "fa",
          "stream": true, "temperature": 0, "guidance": 2, "steps": 8, "seed": 18446744073709551615, "reference": "Zm9v"})");
  EXPECT_EQ(request.input, "سلام");
  EXPECT_EQ(request.voice, "anna");
  EXPECT_EQ(request.language, "fa");
  EXPECT_TRUE(request.format == SoundFormat::pcm && request.stream);
  EXPECT_EQ(request.speed, 1.5);
  EXPECT_EQ(request.temperature, 0);
  EXPECT_EQ(request.guidance, 2);
  EXPECT_EQ(request.steps, 8);
  EXPECT_EQ(request.seed, UINT64_MAX);
  EXPECT_EQ(request.reference, "foo");
}

TEST(SpeechRequest, streams_by_openais_name_too) {
  EXPECT_TRUE(parse_speech_request(R"({"input": "a", "stream_format": "audio"})", {}).stream);
  EXPECT_TRUE(parse_speech_request(R"({"stream_format": "audio", "input": "a", "stream": false})", {}).stream);
}

TEST(SpeechRequest, names_what_is_wrong_in_it) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "not JSON"},
      {"{", "not JSON"},
      {"[]", "not an object"},
      {"\"text\"", "not an object"},
      {"{}", "'input' is missing"},
      {R"({"input": ""})", "'input' is missing"},
      {R"({"input": 3})", "'input' is not a string"},
      {R"({"input": null})", "'input' is not a string"},
      {R"({"input": "a"} x)", "not JSON"},
      {"{\"input\": \"\xFF\"}", "not JSON"},
      {"{\"input\": \"a\nb\"}", "not JSON"},
      {R"({"input": "\ud800"})", "not JSON"},
      {R"({"input": "a\u0000b"})", "control character U+0000"},
      {R"({"input": "a\u001bb"})", "control character U+001B"},
      {R"({"input": "a", "inptu": "b"})", "did you mean 'input'"},
      {R"({"input": "a", "instructions": "b"})", "'instructions' is not a field"},
      {R"({"input": "a", "input": "b"})", "'input' is in the request twice"},
      {R"({"input": "a", "voice": {"id": "b"}})", "a list or an object"},
      {R"({"input": ["a"]})", "a list or an object"},
      {R"({"input": "a", "response_format": "mp3"})", "it may be wav or pcm"},
      {R"({"input": "a", "model": "gpt"})", "'model' is 'gpt'"},
      {R"({"input": "a", "stream": 1})", "'stream' is neither true nor false"},
      {R"({"input": "a", "stream_format": "sse"})", "'stream_format' is 'sse'; it may be audio"},
      {R"({"input": "a", "speed": 0.1})", "'speed' is 0.1; it must be a number from 0.25 to 4"},
      {R"({"input": "a", "speed": "1"})", "'speed' is no number"},
      {R"({"input": "a", "speed": 1e999})", "too large"},
      {R"({"input": "a", "seed": -1})", "'seed' is -1"},
      {R"({"input": "a", "seed": 1.5})", "'seed' is 1.5"},
      {R"({"input": "a", "steps": 65})", "'steps' is 65"},
      {R"({"input": "a", "temperature": 3})", "'temperature' is 3"},
      {R"({"input": "a", "guidance": -1})", "'guidance' is -1"},
      {R"({"input": "a", "reference": "?"})", "'reference' is not a clip in base64"},
      {R"({"input": "a", "reference": ""})", "'reference' is not a clip in base64"},
  };
  for (const auto& [body, must_say] : cases) {
    EXPECT_NE(refusal(body).find(must_say), std::string::npos) << body << "\n" << refusal(body);
  }
}

TEST(SpeechRequest, is_bounded) {
  RequestLimits limits;
  limits.text_letters = 3, limits.reference_bytes = 6;
  EXPECT_EQ(refusal(R"({"input": "سلا"})", limits), "") << "letters are counted, not bytes";
  EXPECT_NE(refusal(R"({"input": "سلام"})", limits).find("'input' has 4 characters"), std::string::npos);
  EXPECT_EQ(refusal(R"({"input": "a", "reference": "Zm9vYmFy"})", limits), "");
  EXPECT_NE(refusal(R"({"input": "a", "reference": "Zm9vYmFyYmFy"})", limits).find("too large"), std::string::npos);
  EXPECT_NE(refusal(R"({"input": )" + std::string(1 << 20, '[')).find("a list or an object"), std::string::npos);
  const std::string name(1 << 16, 'x');
  EXPECT_LT(refusal(R"({"input": "a", ")" + name + R"(": 1})").size(), 400U) << "what it repeats is short";
}

}  // namespace
}  // namespace myxtts
