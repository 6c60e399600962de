// One connection of a client, with the limits that httplib does not have: a time for the whole request to arrive, a
// number of bytes for all of it, headers and chunks included, and a time for the reader to take something. A connection
// serves one request. One thread.
#pragma once

#include "base/clock.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <string>

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
  // Owns the socket. A connection that has sent nothing is given up when `stopping`.
  Connection(int socket, const ConnectionLimits& limits, const std::atomic<bool>& stopping);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The status with which this connection itself ends the request, because a limit is passed; 0: none. From then on
  // nothing is read, and only send() writes.
  int refusal() const { return refusal_; }
  // Whether anything was written yet.
  bool answered() const { return answered_; }
  bool peer_is_there() const;
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
  ssize_t receive();

  const int socket_;
  const ConnectionLimits limits_;
  const std::atomic<bool>& stopping_;
  const Stopwatch age_;
  std::array<char, 16384> buffer_{};
  size_t at_ = 0, filled_ = 0, received_bytes_ = 0;
  int refusal_ = 0;
  bool answered_ = false;
};

}  // namespace myxtts
