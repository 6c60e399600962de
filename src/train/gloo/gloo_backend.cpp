#include "base/error.h"
#include "train/rank_backend.h"

#include <cstdlib>
#include <memory>

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <unistd.h>

namespace myxtts {
namespace {

// This machine's own address on the way to rank 0: the others reach it there too, whatever its name resolves to.
std::string address_towards(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0) {
    reject_input("ranks", "{} is not known here: {}", host, gai_strerror(error),
                 way_out("set MASTER_ADDR to the address of rank 0's machine"));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const int socket = ::socket(one->ai_family, one->ai_socktype, one->ai_protocol);
    if (socket < 0) continue;
    sockaddr_storage own{};
    socklen_t size = sizeof(own);
    auto* const address = reinterpret_cast<sockaddr*>(&own);
    char text[NI_MAXHOST] = "";
    const bool known = ::connect(socket, one->ai_addr, one->ai_addrlen) == 0 &&
                       ::getsockname(socket, address, &size) == 0 &&
                       ::getnameinfo(address, size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) == 0;
    ::close(socket);
    if (known) return text;
  }
  reject_input("ranks", "there is no way from here to {}", host, way_out("is that the address of rank 0's machine?"));
}

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_host_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    const RankPlace& place, std::chrono::milliseconds timeout) {
  using c10d::ProcessGroupGloo;
  auto options = c10::make_intrusive<ProcessGroupGloo::Options>(timeout);
  const char* const interface = std::getenv("GLOO_SOCKET_IFNAME");
  options->devices.push_back(
      interface != nullptr ? ProcessGroupGloo::createDeviceForInterface(interface)
                           : ProcessGroupGloo::createDeviceForHostname(address_towards(place.address, place.port)));
  return c10::make_intrusive<ProcessGroupGloo>(store, place.rank, place.count, options);
}

}  // namespace myxtts
