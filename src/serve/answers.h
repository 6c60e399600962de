// What a server answers besides sound. Pure functions; any thread.
#pragma once

#include "base/error.h"
#include "serve/served_voice.h"

#include <string>
#include <string_view>

namespace myxtts {

// {"error":{"message","type","code"}}; type and code follow from the status.
std::string error_answer(int status, std::string_view message);
// The sentence for what has no message of its own.
std::string sentence_of_status(int status);
// What a client is told of an Error: its own fault (400), or the server's (500, 503).
int status_of(const Error& error);

std::string voices_answer(const VoiceFacts& voice, const RequestLimits& limits);

}  // namespace myxtts
