// POST /v1/audio/speech: from a body to sound. Any number of threads.
#pragma once

#include "serve/server.h"
#include "serve/server_metrics.h"
#include "serve/speech_queue.h"

#include <httplib.h>

namespace myxtts {

struct SpeechListener;  // a client and the job that it waits for

class SpeechHandler {
 public:
  // Borrows them.
  SpeechHandler(const VoiceFacts& voice, const ServerSettings& settings, SpeechQueue& queue, ServerMetrics& metrics)
      : voice_(voice), settings_(settings), queue_(queue), metrics_(metrics) {}

  // `http.progress` says whether the client is still there.
  void answer(const httplib::Request& http, httplib::Response& response, const httplib::ContentReader& reader) const;

 private:
  void speak(const httplib::Request& http, httplib::Response& response, const httplib::ContentReader& reader) const;
  void send_as_made(httplib::Response& response, const std::shared_ptr<SpeechListener>& listener,
                    std::vector<float> first, SoundFormat format) const;
  void send_whole(httplib::Response& response, SpeechListener& listener, const std::vector<float>& first,
                  SoundFormat format) const;
  void warn_of(const std::exception& error) const;
  void count(const SpeechListener& listener) const;

  const VoiceFacts& voice_;
  const ServerSettings& settings_;
  SpeechQueue& queue_;
  ServerMetrics& metrics_;
};

void set_error(httplib::Response& response, int status, const std::string& message);

}  // namespace myxtts
