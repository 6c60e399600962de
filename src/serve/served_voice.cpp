#include "serve/served_voice.h"

#include "base/error.h"
#include "base/nearest.h"

#include <algorithm>
#include <span>

namespace myxtts {
namespace {

constexpr const char* where = "serve";
constexpr const char* default_name = "default";  // what a client sends that must name a voice

bool names_somebody(const std::string& voice) { return !voice.empty() && voice != default_name; }

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

void check_request(const SpeechRequest& request, const VoiceFacts& voice) {
  if (names_somebody(request.voice) && !contains(voice.speakers, request.voice)) {
    const std::string near = nearest(request.voice.substr(0, 40), voice.speakers);
    reject_input(where, "'voice' is '{}', whom this server does not know", request.voice.substr(0, 40),
                 way_out("GET /v1/voices lists them; the nearest is '{}'", near.empty() ? default_name : near));
  }
  if (!request.reference.empty() && names_somebody(request.voice)) {
    reject_input(where, "'voice' and 'reference' both say who speaks", way_out("give one"));
  }
  if (!request.reference.empty() && !voice.takes_references()) {
    reject_input(where, "this voice cannot take the voice of a clip", way_out("leave 'reference' out"));
  }
  if (request.guidance.value_or(0) > 0 && voice.speakers.empty()) {
    reject_input(where, "'guidance' needs a voice with speakers", way_out("leave it out"));
  }
  if (!request.language.empty() && !contains(voice.languages, request.language)) {
    reject_input(where, "'language' is '{}'", request.language.substr(0, 40),
                 way_out("this voice speaks {}", fmt::join(voice.languages, ", ")));
  }
}

std::optional<Clip> decode_reference(const SpeechRequest& request, const RequestLimits& limits) {
  if (request.reference.empty()) return {};
  const ByteSource source = memory_source("the clip", std::as_bytes(std::span(request.reference)));
  // A header may promise anything: no more than the limit is decoded, and one sample to notice that there is more.
  constexpr int highest_rate = 384000;
  const int rate = read_clip(source, 0, 1).sample_rate;
  if (rate < 1 || rate > highest_rate) {
    reject_input(where, "the clip has {} samples per second", rate, way_out("send one with 8000 to 48000"));
  }
  const auto most = static_cast<uint64_t>(limits.reference_s * rate);
  Clip clip = read_clip(source, 0, most + 1);
  if (clip.samples.size() > most) {
    reject_input(where, "the clip is longer than {:.0f} s", limits.reference_s, way_out("send a part of it"));
  }
  return clip;
}

}  // namespace myxtts
