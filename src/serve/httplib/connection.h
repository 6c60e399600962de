// One connection of a client, with the limits that httplib does not have: a time for the whole request to arrive, a
// number of bytes for all of it, headers and chunks included, and a time for the reader to take something. A connection
// serves one request. One thread.
#pragma once

#include "base/clock.h"
#include "serve/httplib/stopping.h"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <httplib.h>
#include <poll.h>

namespace myxtts {

struct ConnectionLimits {
  double receive_s = 0, stall_s = 0;
  size_t request_bytes = 0;
  double linger_s = 10;  // for what a client still sends when it has its answer
};

class Connection final : public httplib::Stream {
 public:
  // Owns the socket. When `stopping`, a connection that has sent nothing is given up, and in the end every one.
  Connection(int socket, const ConnectionLimits& limits, const Stopping& stopping);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The status with which this connection itself ends the request, because a limit is passed; 0: none. From then on
  // nothing is read, and only send() writes.
  int refusal() const { return refusal_; }
  // The status of the answer that was begun; 0: none. "100 Continue" is no answer.
  int status() const { return status_; }
  bool peer_is_there() const;
  // More of the request may come, after its headers.
  void allow(size_t bytes) { limits_.request_bytes += bytes; }
  // Writes all, past the refusal.
  bool send(const char* bytes, size_t count);

  bool is_readable() const override { return wait_for(POLLIN, 0); }
  bool is_writable() const override { return refusal_ == 0 && peer_is_there(); }
  ssize_t read(char* into, size_t count) override;
  ssize_t write(const char* bytes, size_t count) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override { ip.clear(), port = 0; }
  void get_local_ip_and_port(std::string& ip, int& port) const override { ip.clear(), port = 0; }
  socket_t socket() const override { return socket_; }

 private:
  bool wait_for(short events, double seconds) const;
  bool wait_to_send() const;
  ssize_t receive();

  const int socket_;
  ConnectionLimits limits_;
  const Stopping& stopping_;
  const Stopwatch age_;
  std::array<char, 16384> buffer_{};
  size_t at_ = 0, filled_ = 0, received_bytes_ = 0;
  int refusal_ = 0, status_ = 0;
};

}  // namespace myxtts
