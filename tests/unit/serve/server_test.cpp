// The server on real sockets with a voice that needs no model, so that its threads are watched by the sanitizers.
#include "serve/server.h"

#include "base/error.h"

#include <atomic>
#include <optional>
#include <thread>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace myxtts {
namespace {

// Ten samples for every letter.
ServedVoice voice() {
  VoiceFacts facts;
  facts.sample_rate = 8000;
  facts.languages = {"en"};
  return {facts, [](const SpeechRequest& request, const std::optional<Clip>&) -> NextSamples {
            return [left = request.input.size()]() mutable -> std::vector<float> {
              if (left == 0) return {};
              --left;
              return std::vector<float>(10, 0.5F);
            };
          }};
}

std::string answer_to(int port, const std::string& request) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET, address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return "refused";
  ::send(socket, request.data(), request.size(), MSG_NOSIGNAL);
  std::string answer;
  char part[4096];
  for (ssize_t count = 0; (count = ::recv(socket, part, sizeof part, 0)) > 0;) {
    answer.append(part, static_cast<size_t>(count));
  }
  ::close(socket);
  return answer;
}

std::string post(const std::string& body) {
  return fmt::format(
      "POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
      body.size(), body);
}

// Nothing in a build without cpp-httplib.
std::unique_ptr<SpeechServer> server(ServerSettings settings = {}) {
  settings.port = 0;
  try {
    return std::make_unique<SpeechServer>(voice(), settings);
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("no cpp-httplib"), std::string::npos) << error.what();
    return nullptr;
  }
}

TEST(SpeechServer, answers_many_at_once_and_stops) {
  const auto served = server();
  if (!served) GTEST_SKIP() << "there is no cpp-httplib: the server is NOT tested";
  std::thread running([&] { served->run(); });
  std::atomic<int> spoken = 0, refused = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&, i] {
      for (int round = 0; round < 10; ++round) {
        const bool good = (i + round) % 2 == 0;
        const std::string format = i % 2 == 0 ? R"("response_format": "pcm", "stream": true)" : R"("stream": false)";
        const std::string answer = answer_to(served->port(), post(good ? R"({"input": "abc", )" + format + "}"
                                                                       : R"({"input": "abc", "speed": "fast"})"));
        if (answer.starts_with("HTTP/1.1 200 OK")) ++spoken;
        if (answer.starts_with("HTTP/1.1 400") && answer.find("'speed' is no number") != std::string::npos) ++refused;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(spoken, 40);
  EXPECT_EQ(refused, 40);
  const std::string metrics = answer_to(served->port(), "GET /metrics HTTP/1.1\r\n\r\n");
  EXPECT_NE(metrics.find("myxtts_requests_total{status=\"200\"} 40\n"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("myxtts_audio_seconds_total 0.150\n"), std::string::npos) << metrics;
  served->stop();
  running.join();
  EXPECT_EQ(answer_to(served->port(), "GET /health HTTP/1.1\r\n\r\n"), "refused");
}

TEST(SpeechServer, ends_requests_that_pass_a_limit) {
  ServerSettings settings;
  settings.receive_s = 0.2, settings.limits.body_bytes = 1000;
  const auto served = server(settings);
  if (!served) GTEST_SKIP() << "there is no cpp-httplib: the server is NOT tested";
  std::thread running([&] { served->run(); });
  EXPECT_TRUE(answer_to(served->port(), "").starts_with("HTTP/1.1 408"));
  EXPECT_TRUE(answer_to(served->port(), "GET /health HTTP/1.1\r\nX: ").starts_with("HTTP/1.1 408"));
  EXPECT_TRUE(answer_to(served->port(), post(std::string(1001, ' '))).starts_with("HTTP/1.1 413"));
  EXPECT_TRUE(answer_to(served->port(), post(std::string(1000, ' '))).starts_with("HTTP/1.1 400"));
  served->stop();
  running.join();
}

TEST(SpeechServer, that_is_stopped_before_it_runs_ends_at_once) {
  const auto served = server();
  if (!served) GTEST_SKIP() << "there is no cpp-httplib: the server is NOT tested";
  served->stop();
  served->stop();
  served->run();
}

}  // namespace
}  // namespace myxtts
