#include "serve/answers.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

struct Kind {
  int status;
  const char* type;
  const char* code;
  const char* sentence;
};

constexpr const char* callers_fault = "invalid_request_error";
constexpr const char* servers_fault = "server_error";

constexpr Kind kinds[] = {
    {400, callers_fault, "invalid_request",
     "this server cannot read the request as HTTP; check its first line and headers"},
    {403, callers_fault, "wrong_host",
     "the header Host names another machine; this server answers to localhost, 127.0.0.1 and [::1] alone"},
    {404, callers_fault, "not_found",
     "there is nothing at this address; speech is at POST /v1/audio/speech, the page at /"},
    {405, callers_fault, "method_not_allowed", "this address takes another method; the header Allow names it"},
    {408, callers_fault, "too_slow", "the request did not arrive in time; send it faster"},
    {413, callers_fault, "too_large", "the request is too large; send a shorter text or clip"},
    {414, callers_fault, "too_large", "the address is too long; send the text in the body"},
    {415, callers_fault, "unsupported_media_type", "the body is not application/json; send JSON, uncompressed"},
    {416, callers_fault, "invalid_range", "ranges are not served; leave the header Range out"},
    {429, "rate_limit_error", "queue_full",
     "too many texts are being spoken; try again after the seconds in Retry-After"},
    {499, callers_fault, "gone", "the client left before its answer"},
    {500, servers_fault, "internal", "the server failed at this request; please report it with its text"},
    {503, servers_fault, "unavailable", "the server is stopping or has too many connections; try again later"},
};

const Kind& kind_of(int status) {
  const auto* const found = std::ranges::find(kinds, status, &Kind::status);
  if (found != std::end(kinds)) return *found;
  return *std::ranges::find(kinds, status < 500 ? 400 : 500, &Kind::status);
}

}  // namespace

std::string sentence_of_status(int status) { return kind_of(status).sentence; }

std::string error_answer(int status, std::string_view message) {
  const Kind& kind = kind_of(status);
  const nlohmann::ordered_json json = {
      {"error", {{"message", std::string(message)}, {"type", kind.type}, {"code", kind.code}}}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

int status_of(const Error& error) {
  switch (error.code()) {
    case ErrorCode::invalid_input:
    case ErrorCode::invalid_setting:
    case ErrorCode::unreadable:
      return 400;
    case ErrorCode::out_of_memory:
    case ErrorCode::stopped:
      return 503;
    default:
      return 500;
  }
}

std::string voices_answer(const VoiceFacts& voice, const RequestLimits& limits) {
  std::vector<std::string> names = voice.speakers;
  std::erase(names, "");
  std::ranges::sort(names);
  const nlohmann::ordered_json json = {{"voices", names},
                                       {"default_voice", voice.default_speaker},
                                       {"languages", voice.languages},
                                       {"default_language", voice.default_language},
                                       {"sample_rate", voice.sample_rate},
                                       {"takes_references", voice.takes_references()},
                                       {"limits",
                                        {{"input_characters", limits.text_letters},
                                         {"reference_bytes", limits.reference_bytes},
                                         {"reference_seconds", limits.reference_s}}}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace myxtts
