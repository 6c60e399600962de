// The server on real sockets with a voice that needs no model, so that its threads are watched by the sanitizers.
#include "serve/server.h"

#include "base/clock.h"
#include "base/error.h"
#include "tools/loopback.h"

#include <atomic>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

using loopback::connected;
using loopback::read_to_end;

// A piece of so many samples for every letter.
ServedVoice voice(size_t samples = 10, int sample_rate = 8000, std::atomic<int>* pieces = nullptr) {
  VoiceFacts facts;
  facts.sample_rate = sample_rate;
  facts.languages = {"en"};
  return {facts, [=](const SpeechRequest& request, const std::optional<Clip>&) -> SpokenText {
            const auto next = [=, left = request.input.size()]() mutable -> std::vector<float> {
              if (left == 0) return {};
              --left;
              if (pieces) ++*pieces;
              return std::vector<float>(samples, 0.5F);
            };
            return {next, [] { return true; }};
          }};
}

std::string answer_to(int port, const std::string& request) {
  const int socket = connected(port);
  if (socket < 0) return "refused";
  ::send(socket, request.data(), request.size(), MSG_NOSIGNAL);
  std::string answer = read_to_end(socket);
  ::close(socket);
  return answer;
}

std::string post(const std::string& body, const std::string& headers = {}) {
  return fmt::format(
      "POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\n{}Content-Type: application/json\r\nContent-Length: "
      "{}\r\n\r\n{}",
      headers, body.size(), body);
}

std::string get(const std::string& path, const std::string& host = "localhost") {
  return fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", path, host);
}

// Nothing in a build without cpp-httplib.
std::unique_ptr<SpeechServer> server(ServerSettings settings = {}, const ServedVoice& spoken = voice()) {
  settings.port = 0;
  try {
    return std::make_unique<SpeechServer>(spoken, settings);
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
  const std::string metrics = answer_to(served->port(), get("/metrics"));
  EXPECT_NE(metrics.find("myxtts_requests_total{status=\"200\"} 40\n"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("myxtts_audio_seconds_total 0.150\n"), std::string::npos) << metrics;
  served->stop();
  running.join();
  EXPECT_EQ(answer_to(served->port(), get("/health")), "refused");
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
  const std::string metrics = answer_to(served->port(), get("/metrics"));
  EXPECT_NE(metrics.find("{status=\"408\"} 2\n"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("{status=\"400\"} 1\n"), std::string::npos) << "each request is counted once: " << metrics;
  served->stop();
  running.join();
}

TEST(SpeechServer, reads_headers_up_to_a_limit_of_their_own) {
  ServerSettings settings;
  settings.receive_s = 1e6;  // the client waits for its answer, and sends no more
  const auto served = server(settings);
  if (!served) GTEST_SKIP() << "there is no cpp-httplib: the server is NOT tested";
  std::thread running([&] { served->run(); });
  std::string headers = "GET /health HTTP/1.1\r\nHost: localhost\r\n";
  while (headers.size() < 100 << 10) headers += "X: y\r\n";
  EXPECT_TRUE(answer_to(served->port(), headers).starts_with("HTTP/1.1 413"));
  EXPECT_TRUE(answer_to(served->port(), post(R"({"input": "a", "reference": ")" + std::string(100 << 10, 'A') + "\"}"))
                  .starts_with("HTTP/1.1 400"));
  served->stop();
  running.join();
}

TEST(SpeechServer, answers_who_waited_to_be_asked_for_the_body) {
  const std::string expect = "Expect: 100-continue\r\n", whole = post(R"({"input": "abc"})", expect);
  const std::string chunked =
      "POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + expect +
      "Transfer-Encoding: chunked\r\n\r\n1000000\r\n" + std::string(100 << 10, ' ');
  const std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
  for (const double receive_s : {0.2, 1e6}) {
    ServerSettings settings;
    settings.receive_s = receive_s, settings.limits.body_bytes = 1000;
    const auto served = server(settings);
    if (!served) GTEST_SKIP() << "there is no cpp-httplib: the server is NOT tested";
    std::thread running([&] { served->run(); });
    const auto answered = [&](const std::string& request) { return answer_to(served->port(), request); };
    if (receive_s < 1) {
      EXPECT_TRUE(answered(whole.substr(0, whole.size() - 1)).starts_with(go_on + "HTTP/1.1 408"));
    } else {
      EXPECT_TRUE(answered(whole).starts_with(go_on + "HTTP/1.1 200"));
      EXPECT_TRUE(answered(chunked).starts_with(go_on + "HTTP/1.1 413"));
    }
    served->stop();
    running.join();
  }
}

// A name server may lead any name here, and a browser would let that name's page read the answers.
TEST(SpeechServer, answers_on_this_machine_to_this_machines_names_alone) {
  const auto served = server();
  if (!served) GTEST_SKIP() << "there is no cpp-httplib: the server is NOT tested";
  std::thread running([&] { served->run(); });
  for (const char* host : {"localhost", "localhost:8020", "127.0.0.1:80", "[::1]:8020"}) {
    EXPECT_TRUE(answer_to(served->port(), get("/health", host)).starts_with("HTTP/1.1 200")) << host;
  }
  for (const char* host : {"", "evil.example", "127.0.0.1.evil.example:8020"}) {
    const std::string answer = answer_to(served->port(), get("/health", host));
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 403") && answer.find("wrong_host") != std::string::npos) << host;
  }
  EXPECT_TRUE(answer_to(served->port(), "GET /health HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 403"));
  served->stop();
  running.join();
  ServerSettings open;
  open.host = "0.0.0.0";
  const auto everywhere = server(open);
  std::thread other([&] { everywhere->run(); });
  EXPECT_TRUE(answer_to(everywhere->port(), get("/health", "tts.example")).starts_with("HTTP/1.1 200"));
  everywhere->stop();
  other.join();
}

TEST(SpeechServer, lives_when_memory_ends_where_nobody_expects_it) {
  ServerSettings settings;
  std::atomic<int> warnings = 0;
  settings.warn = [&](const std::string&) {
    if (++warnings <= 2) throw std::bad_alloc();
  };
  ServedVoice broken = voice();
  broken.begin = [](const SpeechRequest&, const std::optional<Clip>&) -> SpokenText { throw std::bad_alloc(); };
  const auto served = server(settings, broken);
  if (!served) GTEST_SKIP() << "there is no cpp-httplib: the server is NOT tested";
  std::thread running([&] { served->run(); });
  EXPECT_TRUE(answer_to(served->port(), post(R"({"input": "abc"})")).starts_with("HTTP/1.1 500"));
  EXPECT_EQ(warnings, 3);
  EXPECT_TRUE(answer_to(served->port(), get("/health")).starts_with("HTTP/1.1 200"));
  served->stop();
  running.join();
}

TEST(SpeechServer, ends_speech_that_is_too_long) {
  ServerSettings settings;
  settings.limits.sound_s = 0.01;  // 80 samples
  const auto served = server(settings);
  if (!served) GTEST_SKIP() << "there is no cpp-httplib: the server is NOT tested";
  std::thread running([&] { served->run(); });
  EXPECT_TRUE(answer_to(served->port(), post(R"({"input": "12345678"})")).starts_with("HTTP/1.1 200"));
  const std::string whole = answer_to(served->port(), post(R"({"input": "123456789"})"));
  EXPECT_TRUE(whole.starts_with("HTTP/1.1 400") && whole.find("in parts") != std::string::npos) << whole;
  const std::string streamed = answer_to(served->port(), post(R"({"input": "1234567890123", "stream": true})"));
  EXPECT_FALSE(streamed.ends_with("\r\n0\r\n\r\n")) << "without its last chunk";
  served->stop();
  running.join();
}

// Two megabytes and more, in pieces of 40 KB, each of twenty seconds.
struct LongSpeech {
  std::atomic<int> pieces = 0;
  ServerSettings settings;
  std::unique_ptr<SpeechServer> served;

  explicit LongSpeech(double stall_s, double stop_s) {
    settings.stall_s = stall_s, settings.stop_s = stop_s, settings.limits.sound_s = 1e9;
    served = server(settings, voice(20000, 1000, &pieces));
  }
  std::string request() const {
    return post(R"({"stream": true, "response_format": "pcm", "input": ")" + std::string(4000, 'a') + "\"}");
  }
  // Until it has stood still for a while: nobody reads, and all buffers are full.
  int blocked() const {
    for (int before = -1;;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      if (std::exchange(before, pieces.load()) == pieces.load() && before > 0) return before;
    }
  }
};

// By default a socket takes more only when a third of megabytes is read, which is half a minute of sound.
TEST(SpeechServer, waits_for_a_reader_who_takes_little_at_a_time) {
  LongSpeech speech(/*stall_s=*/5, /*stop_s=*/0);
  if (!speech.served) GTEST_SKIP() << "there is no cpp-httplib: the server is NOT tested";
  std::thread running([&] { speech.served->run(); });
  const int socket = connected(speech.served->port(), 64 << 10);
  const std::string request = speech.request();
  ::send(socket, request.data(), request.size(), MSG_NOSIGNAL);
  std::vector<char> part(384 << 10);
  for (int round = 0; round < 4; ++round) {
    const int before = speech.blocked();
    ASSERT_EQ(::recv(socket, part.data(), part.size(), MSG_WAITALL), static_cast<ssize_t>(part.size())) << round;
    const Stopwatch watch;
    while (speech.pieces == before && watch.seconds() < 20) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_GT(speech.pieces, before) << "it was cut off in round " << round;
  }
  ::close(socket);
  speech.served->stop();
  running.join();
}

TEST(SpeechServer, stops_although_somebody_does_not_read_to_the_end) {
  LongSpeech speech(/*stall_s=*/1e6, /*stop_s=*/0.2);
  if (!speech.served) GTEST_SKIP() << "there is no cpp-httplib: the server is NOT tested";
  std::thread running([&] { speech.served->run(); });
  const int socket = connected(speech.served->port(), 64 << 10);
  const std::string request = speech.request();
  ::send(socket, request.data(), request.size(), MSG_NOSIGNAL);
  speech.blocked();
  speech.served->stop();
  running.join();  // by ctest's time limit otherwise
  ::close(socket);
}

TEST(SpeechServer, stops_although_a_text_is_long) {
  ServerSettings settings;
  settings.stop_s = 0.2;
  std::atomic<int> pieces = 0;
  ServedVoice slow = voice();
  slow.begin = [&](const SpeechRequest&, const std::optional<Clip>&) -> SpokenText {
    const auto next = [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ++pieces;
      return std::vector<float>(10, 0.5F);
    };
    return {next, [] { return true; }};
  };
  const auto served = server(settings, slow);
  if (!served) GTEST_SKIP() << "there is no cpp-httplib: the server is NOT tested";
  std::thread running([&] { served->run(); });
  std::thread client([&] { answer_to(served->port(), post(R"({"input": "abc"})")); });
  while (pieces == 0) std::this_thread::yield();
  served->stop();
  running.join();  // by ctest's time limit otherwise: it would be spoken for half an hour
  client.join();
}

TEST(SpeechServer, takes_more_connections_than_it_speaks_for) {
  ServerSettings settings;
  settings.connections = 1, settings.queue = 2;
  const auto served = server(settings);
  if (!served) GTEST_SKIP() << "there is no cpp-httplib: the server is NOT tested";
  std::thread running([&] { served->run(); });
  std::vector<int> sockets;
  for (int i = 0; i < 2 + 31; ++i) sockets.push_back(connected(served->port()));
  EXPECT_TRUE(answer_to(served->port(), get("/health")).starts_with("HTTP/1.1 200"));
  while (answer_to(served->port(), get("/health")).starts_with("HTTP/1.1 200")) {
    sockets.push_back(connected(served->port()));
  }
  EXPECT_LT(sockets.size(), 100U) << "there is a limit";
  for (const int socket : sockets) ::close(socket);
  served->stop();
  running.join();
}

// As if the system had taken its socket away.
TEST(SpeechServer, that_cannot_accept_any_more_says_so) {
  const auto served = server();
  if (!served) GTEST_SKIP() << "there is no cpp-httplib: the server is NOT tested";
  for (int descriptor = 3; descriptor < 1024; ++descriptor) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) == 0 && address.sin_family == AF_INET &&
        ntohs(address.sin_port) == served->port()) {
      ::shutdown(descriptor, SHUT_RDWR);
    }
  }
  EXPECT_THROW(served->run(), Error);
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
