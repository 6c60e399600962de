#include "serve/served_voice.h"

#include "audio/wav.h"
#include "base/error.h"
#include "serve/answers.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

VoiceFacts facts() { return {{"anna", "bert"}, {"en", "fa"}, "anna", "en", 22050}; }

std::string refusal(const SpeechRequest& request, const VoiceFacts& voice = facts()) {
  try {
    check_request(request, voice);
  } catch (const Error& error) {
    return error.sentence();
  }
  return {};
}

std::string clip_bytes(double seconds, int rate = 16000) {
  const std::vector<float> samples(static_cast<size_t>(seconds * rate), 0.1F);
  const std::vector<std::byte> wav = make_wav(samples, rate);
  return {reinterpret_cast<const char*>(wav.data()), wav.size()};
}

TEST(ServedVoice, speaks_as_those_it_knows_and_says_who_is_near) {
  SpeechRequest request;
  EXPECT_EQ(refusal(request), "");
  for (const char* known : {"anna", "default"}) {
    request.voice = known;
    EXPECT_EQ(refusal(request), "") << known;
  }
  request.voice = "anne";
  EXPECT_NE(refusal(request).find("the nearest is 'anna'"), std::string::npos);
  request.voice = "/etc/passwd.speaker";
  EXPECT_NE(refusal(request).find("does not know"), std::string::npos) << "files are for the command line";
  request = {};
  request.language = "de";
  EXPECT_NE(refusal(request).find("this voice speaks en, fa"), std::string::npos);
}

TEST(ServedVoice, of_one_speaker_clones_nobody) {
  VoiceFacts alone = facts();
  alone.speakers.clear();
  SpeechRequest request;
  request.reference = "clip";
  EXPECT_NE(refusal(request, alone).find("leave 'reference' out"), std::string::npos);
  EXPECT_EQ(refusal(request), "");
  request.voice = "anna";
  EXPECT_NE(refusal(request).find("both say who speaks"), std::string::npos);
  request = {};
  request.guidance = 1;
  EXPECT_NE(refusal(request, alone).find("'guidance' needs a voice with speakers"), std::string::npos);
}

TEST(ServedVoice, decodes_a_reference_up_to_its_limit) {
  RequestLimits limits;
  limits.reference_s = 2;
  SpeechRequest request;
  EXPECT_FALSE(decode_reference(request, limits));
  request.reference = clip_bytes(2);
  EXPECT_EQ(decode_reference(request, limits)->samples.size(), 32000U);
  request.reference = clip_bytes(2.1);
  EXPECT_THROW(decode_reference(request, limits), Error);
  for (const std::string& broken :
       {std::string("x"), std::string(4000, '\0'), clip_bytes(1).substr(0, 60), std::string("RIFF")}) {
    request.reference = broken;
    EXPECT_THROW(decode_reference(request, limits), Error) << broken.size();
  }
}

TEST(Answers, are_json_whatever_they_repeat) {
  for (const int status : {400, 403, 404, 405, 408, 413, 414, 415, 416, 417, 429, 499, 500, 503, 599}) {
    const auto json = nlohmann::json::parse(error_answer(status, "bytes \xFF \" \n"));
    EXPECT_EQ(json.size(), 1U);
    for (const char* part : {"message", "type", "code"}) EXPECT_TRUE(json["error"][part].is_string()) << status;
    EXPECT_FALSE(sentence_of_status(status).empty());
  }
  const auto voices = nlohmann::json::parse(voices_answer(facts(), {}));
  EXPECT_EQ(voices["voices"].size(), 2U);
  EXPECT_EQ(voices["sample_rate"], 22050);
}

}  // namespace
}  // namespace myxtts
