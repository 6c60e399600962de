// Speech over HTTP: the endpoints, and the limits that keep strangers from hurting the server. Over cpp-httplib in
// `httplib/`; in builds without it `no_httplib/` throws Error.
#pragma once

#include "serve/served_voice.h"

#include <functional>
#include <memory>
#include <string>

namespace myxtts {

struct ServerSettings {
  std::string host = "127.0.0.1";
  int port = 8020;          // 0: any free one
  size_t queue = 16;        // requests that are spoken at a time; more are answered with 429
  size_t connections = 64;  // at least so many at a time, and 32 more than `queue`; more are answered with 503
  double receive_s = 10;    // for a request to arrive whole
  double stall_s = 10;      // for a reader to take something
  double stop_s = 30;       // for what was begun when it is stopped
  RequestLimits limits;
  std::function<void(const std::string&)> warn;  // of failures that are not the client's; called from any thread
};

class SpeechServer {
 public:
  // Throws Error if the address cannot be had.
  SpeechServer(ServedVoice voice, const ServerSettings& settings);
  ~SpeechServer();
  SpeechServer(const SpeechServer&) = delete;
  SpeechServer& operator=(const SpeechServer&) = delete;

  int port() const;
  // Serves until stop(); returns when what was begun by then is finished or its time is over. Throws Error if
  // connections can no longer be accepted.
  void run();
  // Any thread, also before run().
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace myxtts
