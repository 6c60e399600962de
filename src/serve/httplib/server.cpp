#include "serve/server.h"

#include "base/error.h"
#include "base/memory.h"
#include "serve/answers.h"
#include "serve/httplib/connection.h"
#include "serve/httplib/speech_handler.h"
#include "serve/httplib/stopping.h"
#include "serve/loopback.h"
#include "serve/page.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include <sys/socket.h>

namespace myxtts {
namespace {

constexpr size_t header_bytes = 64 << 10;

struct Route {
  const char *path, *method, *allow;
};
constexpr Route routes[] = {{"/", "GET", "GET, HEAD"},
                            {"/health", "GET", "GET, HEAD"},
                            {"/metrics", "GET", "GET, HEAD"},
                            {"/v1/voices", "GET", "GET, HEAD"},
                            {"/v1/audio/speech", "POST", "POST"}};

// As many connections at a time as there are threads. One more is run by the thread that accepts, which is how the
// server knows that it has to refuse it.
class ConnectionThreads : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(size_t count) : count_(count), pool_(count) {}

  void enqueue(std::function<void()> serve) override {
    if (busy_ >= count_) return serve();
    ++busy_;
    pool_.enqueue([this, serve = std::move(serve)] {
      serve();
      --busy_;
    });
  }
  void shutdown() override { pool_.shutdown(); }

 private:
  const size_t count_;
  std::atomic<size_t> busy_ = 0;
  httplib::ThreadPool pool_;
};

std::string plain_answer(int status) {
  const std::string body = error_answer(status, sentence_of_status(status));
  return fmt::format(
      "HTTP/1.1 {} Refused\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
      status, body.size(), body);
}

bool is_json(const httplib::Request& http) {
  std::string type = http.get_header_value("Content-Type");
  type = type.substr(0, type.find(';'));
  while (type.ends_with(' ')) type.pop_back();
  std::ranges::transform(type, type.begin(), [](unsigned char letter) { return std::tolower(letter); });
  const std::string encoding = http.get_header_value("Content-Encoding");
  return type == "application/json" && (encoding.empty() || encoding == "identity");
}

}  // namespace

struct SpeechServer::State : httplib::Server {
  State(ServedVoice voice, const ServerSettings& given)
      : settings(given),
        facts(voice.facts),
        queue(std::move(voice), given.queue),
        handler(facts, settings, queue, metrics) {
    bind();
    set_limits();
    add_routes();
  }

  void bind();
  void set_limits();
  void add_routes();
  void stop_accepting() const { ::shutdown(svr_sock_, SHUT_RDWR); }
  HandlerResponse check_route(const httplib::Request& http, httplib::Response& response) const;
  bool process_and_close_socket(socket_t socket) override;
  void serve(Connection& connection);

  const ServerSettings settings;
  const VoiceFacts facts;
  ServerMetrics metrics;
  SpeechQueue queue;
  SpeechHandler handler;
  int port = 0;
  Stopping stopping{settings.stop_s};
  std::thread::id accepting;
};

void SpeechServer::State::bind() {
  // The default would let two servers share a port.
  set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  errno = 0;
  port = settings.port;
  const bool bound = port == 0 ? (port = bind_to_any_port(settings.host)) > 0 : bind_to_port(settings.host, port);
  if (!bound) {
    fail("serve", "{} port {} cannot be had: {}", settings.host, settings.port,
         errno == 0 ? "no such address on this machine" : std::strerror(errno),
         way_out("give another --port or --host"));
  }
  ::listen(svr_sock_, 128);  // more than the five that httplib lets wait
}

void SpeechServer::State::set_limits() {
  // More than are spoken for, so that the others hear of that, and /health answers.
  new_task_queue = [this] { return new ConnectionThreads(std::max(settings.connections, settings.queue + 32)); };
  set_tcp_nodelay(true);
  set_default_headers({{"X-Content-Type-Options", "nosniff"}, {"Cache-Control", "no-store"}});
}

void SpeechServer::State::add_routes() {
  set_pre_routing_handler([this](const auto& http, auto& response) { return check_route(http, response); });
  Get("/", [](const httplib::Request&, httplib::Response& response) {
    const ServedPage page = page_with_nonce();
    response.set_header("Content-Security-Policy", page.content_security_policy);
    response.set_content(page.html, "text/html; charset=utf-8");
  });
  Get("/health", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("{\"status\":\"ok\"}\n", "application/json");
  });
  Get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
    response.set_content(metrics.text(queue.length(), resident_bytes()), "text/plain; version=0.0.4");
  });
  Get("/v1/voices", [this](const httplib::Request&, httplib::Response& response) {
    response.set_content(voices_answer(facts, settings.limits), "application/json");
  });
  Post("/v1/audio/speech", [this](const httplib::Request& http, httplib::Response& response,
                                  const httplib::ContentReader& reader) { handler.answer(http, response, reader); });
  set_error_handler(httplib::Server::Handler([](const httplib::Request&, httplib::Response& response) {
    if (response.body.empty()) set_error(response, response.status, sentence_of_status(response.status));
  }));
  set_exception_handler([this](const httplib::Request&, httplib::Response& response, std::exception_ptr) {
    if (settings.warn) settings.warn("an endpoint failed");
    response.status = 500;
  });
}

// Decided before the body is read. What stays unhandled goes to its handler.
httplib::Server::HandlerResponse SpeechServer::State::check_route(const httplib::Request& http,
                                                                  httplib::Response& response) const {
  const auto refuse = [&](int status) {
    response.status = status;
    return HandlerResponse::Handled;
  };
  if (stopping.begun()) return refuse(503);
  // Otherwise a page of anybody, whose name a name server leads here, could use this server from a browser.
  if (is_loopback(settings.host) && !is_loopback(host_of(http.get_header_value("Host")))) return refuse(403);
  const auto* const route = std::ranges::find_if(routes, [&](const Route& known) { return http.path == known.path; });
  if (route == std::end(routes)) return refuse(404);
  if (http.method != route->method && !(http.method == "HEAD" && std::string_view(route->method) == "GET")) {
    response.set_header("Allow", route->allow);
    return refuse(405);
  }
  if (http.method != "POST") return HandlerResponse::Unhandled;
  if (!is_json(http)) return refuse(415);
  if (http.get_header_value<uint64_t>("Content-Length") > settings.limits.body_bytes) return refuse(413);
  return HandlerResponse::Unhandled;
}

bool SpeechServer::State::process_and_close_socket(socket_t socket) {
  const bool too_many = std::this_thread::get_id() == accepting;
  ConnectionLimits limits{settings.receive_s, settings.stall_s};
  limits.request_bytes = header_bytes;
  if (too_many) limits.linger_s = limits.stall_s = 0;  // nobody is accepted meanwhile
  Connection connection(socket, limits, stopping);
  const auto refuse = [&](int status) {
    const std::string answer = plain_answer(status);
    connection.send(answer.data(), answer.size());
  };
  try {
    if (!too_many) serve(connection);
    const int refusal = too_many ? 503 : connection.refusal();
    if (refusal != 0 && connection.status() == 0) refuse(refusal);
  } catch (const std::exception& error) {  // for want of memory, where httplib does not expect it
    if (connection.status() == 0) refuse(500);
    if (settings.warn) settings.warn(error.what());
  }
  if (connection.status() != 0) metrics.add_request(connection.status());
  return !too_many;
}

void SpeechServer::State::serve(Connection& connection) {
  bool closed = false;
  process_request(connection, /*close_connection=*/true, closed, [&](httplib::Request& http) {
    connection.allow(settings.limits.body_bytes);  // here its headers are read
    http.ranges.clear();
    // A field that httplib uses in clients only: how the handler learns whether its client is still waited for.
    http.progress = [&](uint64_t, uint64_t) { return connection.peer_is_there() && !stopping.over(); };
  });
}

SpeechServer::SpeechServer(ServedVoice voice, const ServerSettings& settings)
    : state_(std::make_unique<State>(std::move(voice), settings)) {}

SpeechServer::~SpeechServer() = default;

int SpeechServer::port() const { return state_->port; }

void SpeechServer::run() {
  state_->accepting = std::this_thread::get_id();
  if (!state_->listen_after_bind() && !state_->stopping.begun()) {
    fail("serve", "connections can no longer be accepted", way_out("start the server again"));
  }
}

// Ends accept(); what was accepted is finished by its thread.
void SpeechServer::stop() {
  if (state_->stopping.begin()) state_->stop_accepting();
}

}  // namespace myxtts
