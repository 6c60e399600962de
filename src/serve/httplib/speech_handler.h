// POST /v1/audio/speech: from a body to sound. Any number of threads.
#pragma once

#include "serve/server.h"
#include "serve/server_metrics.h"
#include "serve/speech_queue.h"

#include <httplib.h>

namespace myxtts {

class SpeechHandler {
 public:
  // Borrows them.
  SpeechHandler(const VoiceFacts& voice, const ServerSettings& settings, SpeechQueue& queue, ServerMetrics& metrics)
      : voice_(voice), settings_(settings), queue_(queue), metrics_(metrics) {}

  // `http.progress` says whether the client is still there.
  void answer(const httplib::Request& http, httplib::Response& response, const httplib::ContentReader& reader) const;

 private:
  void speak(const httplib::Request& http, httplib::Response& response, const httplib::ContentReader& reader) const;

  const VoiceFacts& voice_;
  const ServerSettings& settings_;
  SpeechQueue& queue_;
  ServerMetrics& metrics_;
};

void set_error(httplib::Response& response, int status, const std::string& message);

}  // namespace myxtts
