#include "train/rank_store.h"

#include "base/system_calls.h"

#include <cstdint>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace myxtts {
namespace {

bool is_loopback(const sockaddr& address) {
  if (address.sa_family == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  }
  constexpr uint32_t loopback_network = 127;
  return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == loopback_network;
}

// A socket that listens at rank 0's address alone; the store's own would listen on every network. None if that address
// is not one of this machine's, or one that other machines do not reach, as of a host name that leads to 127.0.1.1.
std::optional<int> listen_at(const RankPlace& place) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(place.address.c_str(), std::to_string(place.port).c_str(), &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (is_loopback(*one->ai_addr) && place.on_machine < place.count) continue;
    Descriptor socket{::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol)};
    const int yes = 1;
    const bool listens =
        socket.number >= 0 && ::setsockopt(socket.number, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        ::bind(socket.number, one->ai_addr, one->ai_addrlen) == 0 && ::listen(socket.number, SOMAXCONN) == 0;
    if (listens) return std::exchange(socket.number, -1);
  }
  return {};
}

std::string text_from(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

RankStore connect(const RankPlace& place, bool serves, double timeout_s,
                  const std::function<void(const std::string&)>& warn) {
  c10d::TCPStoreOptions options;
  if (serves) options.masterListenFd = listen_at(place);  // the store closes it
  if (serves && !options.masterListenFd && warn) {
    warn(fmt::format("rank 0 cannot listen at {} alone: its port {} is open to every network of this machine",
                     place.address, place.port));
  }
  options.port = place.port;
  options.isServer = serves;
  options.waitWorkers = false;
  options.timeout = to_ms(timeout_s);
  return c10::make_intrusive<c10d::PrefixStore>("myxtts/" + place.run,
                                                c10::make_intrusive<c10d::TCPStore>(place.address, options));
}

void put(const RankStore& store, const std::string& key, const std::string& text) {
  store->set(key, std::vector<uint8_t>(text.begin(), text.end()));
}
std::string take(const RankStore& store, const std::string& key) { return text_from(store->get(key)); }
RankStore within(const std::string& prefix, const RankStore& store) {
  return c10::make_intrusive<c10d::PrefixStore>(prefix, store);
}
std::string key_of(const char* what, int rank) { return fmt::format("{}/{}", what, rank); }

std::string put_first(const RankStore& store, const std::string& key, const std::string& text) {
  return text_from(store->compareSet(key, {}, std::vector<uint8_t>(text.begin(), text.end())));
}

}  // namespace myxtts
