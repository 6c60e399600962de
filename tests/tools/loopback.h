// A client of a server on this machine, for tests.
#pragma once

#include <cstdint>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace myxtts::loopback {

// A connected socket, or -1 with errno. `window_bytes`: of what it holds before it is read; 0: as the system has it.
inline int connected(int port, int window_bytes = 0) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (window_bytes > 0) ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &window_bytes, sizeof window_bytes);
  sockaddr_in address{};
  address.sin_family = AF_INET, address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return socket;
  ::close(socket);
  return -1;
}

// All that comes until the other side closes.
inline std::string read_to_end(int socket) {
  std::string answer;
  char part[4096];
  for (ssize_t count = 0; (count = ::recv(socket, part, sizeof part, 0)) > 0;) {
    answer.append(part, static_cast<size_t>(count));
  }
  return answer;
}

}  // namespace myxtts::loopback
