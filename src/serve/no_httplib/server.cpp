#include "serve/server.h"

#include "base/error.h"

namespace myxtts {

struct SpeechServer::State {};

SpeechServer::SpeechServer(ServedVoice, const ServerSettings&) {
  reject_input("serve", "this build has no cpp-httplib",
               way_out("install libcpp-httplib-dev, 0.11 to 0.14, and build again"));
}

SpeechServer::~SpeechServer() = default;
int SpeechServer::port() const { return 0; }
void SpeechServer::run() {}
void SpeechServer::stop() {}

}  // namespace myxtts
