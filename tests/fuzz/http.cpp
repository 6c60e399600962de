// What anybody may send to the server, from the first line of the request on, over a real socket; with a voice that
// needs no model.
#include "fuzz.h"
#include "serve/server.h"
#include "tools/loopback.h"

#include <cerrno>
#include <chrono>
#include <thread>

using namespace myxtts;

namespace {

constexpr size_t samples_per_letter = 4;

ServedVoice voice() {
  VoiceFacts facts;
  facts.sample_rate = 8000;
  facts.speakers = {"a", "b"}, facts.languages = {"en", "fa"};
  return {facts, [](const SpeechRequest& request, const std::optional<Clip>&) -> SpokenText {
            const auto next = [left = request.input.size()]() mutable -> std::vector<float> {
              if (left == 0) return {};
              --left;
              return std::vector<float>(samples_per_letter, 0.5F);
            };
            return {next, [] { return true; }};
          }};
}

// One for all inputs, which are its requests. It runs until the process ends.
int port_of_the_server() {
  static const int port = [] {
    ServerSettings settings;
    settings.port = 0;
    settings.limits = {8192, 200, 4096, 5};
    auto* const server = new SpeechServer(voice(), settings);
    std::thread([server] { server->run(); }).detach();
    return server->port();
  }();
  return port;
}

// The answer to a client that sends the input and then nothing more.
std::string answer_to(fuzz::Input input) {
  int socket = -1;
  while ((socket = loopback::connected(port_of_the_server())) < 0) {
    fuzz::expect(errno == EADDRNOTAVAIL);  // so many connections were closed just now that no port is left
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (size_t at = 0; at < input.size();) {
    const ssize_t sent = ::send(socket, input.data() + at, input.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) break;  // it has heard enough
    at += static_cast<size_t>(sent);
  }
  ::shutdown(socket, SHUT_WR);
  std::string answer = loopback::read_to_end(socket);
  ::close(socket);
  return answer;
}

}  // namespace

FUZZ_TARGET(input) {
  const std::string answer = answer_to(input);
  if (answer.empty()) return;  // no whole request came
  fuzz::expect(answer.starts_with("HTTP/1.1 "));
  const std::string_view status = std::string_view(answer).substr(9, 3);
  fuzz::expect(status >= "100" && status <= "599");
  fuzz::expect(status < "400" || answer.find("application/json") != std::string::npos);
}
