#include "serve/httplib/connection.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace myxtts {
namespace {

constexpr double poll_s = 0.1;  // how often what else may have happened is looked at
// Of what waits to be sent. By default it grows to megabytes, of which a third must be read before more is taken: a
// listener who plays in real time would look as if he took nothing.
constexpr int unsent_bytes = 128 << 10;

// In the first line of an answer; 0: none, or it says that an answer follows.
int status_in(std::string_view bytes) {
  constexpr std::string_view version = "HTTP/1.1 ";
  int status = 0;
  if (bytes.starts_with(version)) std::from_chars(bytes.data() + version.size(), bytes.data() + bytes.size(), status);
  return status >= 200 ? status : 0;
}

}  // namespace

Connection::Connection(int socket, const ConnectionLimits& limits, const Stopping& stopping)
    : socket_(socket), limits_(limits), stopping_(stopping) {
  ::fcntl(socket_, F_SETFD, FD_CLOEXEC);  // espeak-ng is a process that would hold it open
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_bytes, sizeof unsent_bytes);
}

// What the client is still sending is read for a while: a socket that is closed with unread bytes resets the
// connection, and the client would never see its answer.
Connection::~Connection() {
  constexpr double idle_s = 1;
  ::shutdown(socket_, SHUT_WR);
  const Stopwatch watch;
  while (watch.seconds() < limits_.linger_s && wait_for(POLLIN, idle_s) &&
         ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT) > 0) {
  }
  ::close(socket_);
}

bool Connection::wait_for(short events, double seconds) const {
  pollfd one{socket_, events, 0};
  return ::poll(&one, 1, static_cast<int>(seconds * 1e3)) > 0;
}

bool Connection::peer_is_there() const {
  pollfd one{socket_, POLLRDHUP, 0};
  return ::poll(&one, 1, 0) <= 0;
}

// As many bytes as have come; 0 at the end, -1 if there is nothing to wait for.
ssize_t Connection::receive() {
  if (refusal_ != 0) return -1;
  if (received_bytes_ >= limits_.request_bytes) {
    refusal_ = 413;
    return -1;
  }
  while (!wait_for(POLLIN, poll_s)) {
    if (stopping_.begun() && received_bytes_ == 0) return -1;
    if (age_.seconds() > limits_.receive_s) {
      refusal_ = 408;
      return -1;
    }
  }
  if (age_.seconds() > limits_.receive_s) {
    refusal_ = 408;
    return -1;
  }
  const ssize_t count = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
  if (count > 0) received_bytes_ += static_cast<size_t>(count);
  return count;
}

ssize_t Connection::read(char* into, size_t count) {
  if (at_ == filled_) {
    const ssize_t received = receive();
    if (received <= 0) return received;
    at_ = 0, filled_ = static_cast<size_t>(received);
  }
  const size_t taken = std::min(count, filled_ - at_);
  std::memcpy(into, buffer_.data() + at_, taken);
  at_ += taken;
  return static_cast<ssize_t>(taken);
}

bool Connection::wait_to_send() const {
  const Stopwatch watch;
  do {
    if (stopping_.over()) return false;
    if (wait_for(POLLOUT, std::min(poll_s, limits_.stall_s))) return true;
  } while (watch.seconds() < limits_.stall_s);
  return false;
}

bool Connection::send(const char* bytes, size_t count) {
  if (status_ == 0) status_ = status_in({bytes, count});
  for (size_t at = 0; at < count;) {
    if (!wait_to_send()) return false;
    const ssize_t sent = ::send(socket_, bytes + at, count - at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (sent <= 0) return false;
    at += static_cast<size_t>(sent);
  }
  return true;
}

ssize_t Connection::write(const char* bytes, size_t count) {
  if (refusal_ != 0 || !send(bytes, count)) return -1;
  return static_cast<ssize_t>(count);
}

}  // namespace myxtts
