#include "train/ranks.h"

#include "base/clock.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/system_calls.h"
#include "train/rank_backend.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <arpa/inet.h>
#include <c10/util/Logging.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <sys/socket.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace myxtts {
namespace {

using std::chrono::milliseconds;
using Store = c10::intrusive_ptr<c10d::Store>;
using Warn = std::function<void(const std::string&)>;

milliseconds to_ms(double seconds) { return milliseconds(static_cast<int64_t>(seconds * 1e3)); }

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

Store connect(const RankPlace& place, bool serves, double timeout_s, const Warn& warn = {}) {
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
  return c10::make_intrusive<c10d::PrefixStore>("myxtts/" + place.attempt,
                                                c10::make_intrusive<c10d::TCPStore>(place.address, options));
}

void put(const Store& store, const std::string& key, const std::string& text) {
  store->set(key, std::vector<uint8_t>(text.begin(), text.end()));
}
std::string take(const Store& store, const std::string& key) {
  const std::vector<uint8_t> bytes = store->get(key);
  return {bytes.begin(), bytes.end()};
}
std::string key_of(const char* what, int rank) { return fmt::format("{}/{}", what, rank); }

// What goes wrong is said in one sentence, not also in libtorch's warnings with their stacks.
void quieten_libtorch() {
  [[maybe_unused]] static const bool once = [] {
    constexpr int errors_alone = 2;
    if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = errors_alone;
    return true;
  }();
}

// The verdict about a lost rank: the first one's.
std::string agree(const Store& store, const std::string& verdict) {
  const std::vector<uint8_t> agreed =
      store->compareSet("verdict", {}, std::vector<uint8_t>(verdict.begin(), verdict.end()));
  return {agreed.begin(), agreed.end()};
}

// What a store answers; empty if it does not, because whoever serves it is gone or hangs.
std::string in_time(std::function<std::string()> ask) {
  constexpr std::chrono::seconds patience(15);
  std::promise<std::string> answer;
  std::future<std::string> answered = answer.get_future();
  std::thread([ask = std::move(ask), answer = std::move(answer)]() mutable {
    try {
      answer.set_value(ask());
    } catch (const std::exception&) {
      answer.set_value("");
    }
  }).detach();  // it may wait for ever
  return answered.wait_for(patience) == std::future_status::ready ? answered.get() : "";
}

std::string names_of(const std::vector<int>& ranks) {
  constexpr size_t listed = 8;
  const std::vector<int> first(ranks.begin(), ranks.begin() + static_cast<ptrdiff_t>(std::min(listed, ranks.size())));
  return fmt::format("rank{} {}{}", ranks.size() == 1 ? "" : "s", fmt::join(first, ", "),
                     ranks.size() > listed ? fmt::format(" and {} more", ranks.size() - listed) : "");
}

std::vector<std::string> beats_in(const Store& store, int count) {
  std::vector<std::string> all;
  for (int rank = 0; rank < count; ++rank) {
    const std::string key = key_of("beat", rank);
    all.push_back(store->check({key}) ? take(store, key) : "");
  }
  return all;
}

// Who was lost: whoever said so first, or those whose hearts no longer beat.
std::string find_lost(const Store& store, const RankPlace& place, const std::string& reason) {
  constexpr double listens_s = 5;
  constexpr milliseconds pause(200);
  const Stopwatch clock;
  const std::vector<std::string> before = beats_in(store, place.count);
  while (clock.seconds() < listens_s) {
    if (store->check({"verdict"})) {
      store->add("heard", 1);
      return take(store, "verdict");
    }
    std::this_thread::sleep_for(pause);
  }
  const std::vector<std::string> after = beats_in(store, place.count);
  std::vector<int> silent;
  for (size_t rank = 0; rank < after.size(); ++rank) {
    if (after[rank] == before[rank]) silent.push_back(static_cast<int>(rank));
  }
  return agree(store, silent.empty() ? fmt::format("rank {} lost its connection to another: {}", place.rank, reason)
                                     : fmt::format("{} of {} no longer answer{}", names_of(silent), place.count,
                                                   silent.size() == 1 ? "s" : ""));
}

}  // namespace

Ranks::Ranks(const RankPlace& place, const std::string& version, double timeout_s, const Warn& warn)
    : place_(place), timeout_s_(timeout_s) {
  quieten_libtorch();
  try {
    store_ = connect(place, place.rank == 0 && !place.store_is_served, timeout_s, warn);
  } catch (const std::exception&) {  // libtorch's sentence has many lines
    reject_input("ranks", "rank {} cannot meet the others at {}:{} within {:.0f} s", place.rank, place.address,
                 place.port, timeout_s,
                 place.rank == 0 ? way_out("is another program using that port?")
                                 : way_out("does rank 0 run on that machine, and may this one reach it?"));
  }
  meet(version);
  try {
    backend_ = make_host_backend(store_, place, to_ms(timeout_s));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    lost(error.what());
  }
  try {
    heart_store_ = connect(place, false, timeout_s);
  } catch (const std::exception& error) {
    lost(error.what());
  }
  heart_ = std::thread([this] { beat(); });
}

Ranks::~Ranks() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ends_.notify_all();
  if (heart_.joinable()) heart_.join();
}

// Rank 0 reads who is there and answers all of them at once.
void Ranks::meet(const std::string& version) {
  const auto answer = [&](const std::string& text) { put(store_, "answer", text); };
  const Stopwatch clock;
  put(store_, key_of("version", place_.rank), version);
  if (place_.rank == 0) {
    std::vector<int> missing;
    std::string difference;
    for (int rank = 1; rank < place_.count; ++rank) {
      const std::string key = key_of("version", rank);
      try {
        store_->wait({key}, to_ms(std::max(0.1, timeout_s_ - clock.seconds())));
      } catch (const std::exception&) {
        missing.push_back(rank);
        continue;
      }
      const std::string theirs = take(store_, key);
      if (theirs != version && difference.empty())
        difference = fmt::format("rank {} is {}, rank 0 {}", rank, theirs, version);
    }
    if (!missing.empty()) {
      difference = fmt::format("{} of {} did not come within {:.0f} s", names_of(missing), place_.count, timeout_s_);
    }
    answer(difference);
  }
  std::string difference;
  try {
    constexpr double grace_s = 10;
    store_->wait({"answer"}, to_ms(timeout_s_ + grace_s));
    difference = take(store_, "answer");
    if (place_.rank > 0) store_->add("answered", 1);
  } catch (const std::exception&) {
    difference = fmt::format("rank 0 of {} did not come within {:.0f} s", place_.count, timeout_s_);
  }
  if (difference.empty()) return;
  stay_until_heard("answered");
  reject_input("ranks", "{}", difference, way_out("begin all ranks with the same program and settings"));
}

// The store goes with the rank that serves it: first all others have read what it holds.
void Ranks::stay_until_heard(const std::string& what) {
  const Stopwatch clock;
  constexpr double most_s = 5;
  if (place_.rank != 0 || place_.store_is_served) return;
  while (store_->add(what, 0) + 1 < place_.count && clock.seconds() < most_s) {
    std::this_thread::sleep_for(milliseconds(50));
  }
}

void Ranks::beat() {
  constexpr milliseconds every(1000);
  try {
    std::unique_lock lock(mutex_);
    for (int64_t beats = 1; !ended_; ++beats) {
      put(heart_store_, key_of("beat", place_.rank), std::to_string(beats));  // without an answer to wait for
      ends_.wait_for(lock, every, [this] { return ended_; });
    }
  } catch (const std::exception&) {  // the store is gone with rank 0: the next message finds that out
  }
}

void Ranks::lost(const std::string& reason) {
  std::string found = in_time([store = store_, place = place_, reason = reason.substr(0, reason.find('\n'))] {
    return find_lost(store, place, reason);
  });
  if (found.empty()) {
    found = place_.store_is_served ? "torchrun, where the ranks meet, no longer answers"
                                   : fmt::format("rank 0 of {} no longer answers", place_.count);
  } else {
    backend_.reset();  // so that ranks that still wait for this one find out too
    stay_until_heard("heard");
  }
  fail("ranks", "{}", found, way_out("the newest checkpoint is whole, and the same command resumes from it"));
}

void Ranks::leave(const std::string& why) noexcept {
  try {
    const std::string text = fmt::format("rank {} stopped: {}", place_.rank, why);
    const std::string agreed = in_time([store = store_, text] { return agree(store, text); });
    if (agreed != text) return;  // another one was first, or nobody is left to hear it
    backend_.reset();            // the others find out, and read why
    stay_until_heard("heard");
  } catch (const std::exception&) {  // nobody is left to hear it
  }
}

void Ranks::finish(const std::function<c10::intrusive_ptr<c10d::Work>()>& start) {
  try {
    start()->wait();
  } catch (const std::exception& error) {
    lost(error.what());
  }
}

void Ranks::sum(at::Tensor& values) {
  at::Tensor host = values;
  const bool plain = values.is_cpu() && values.scalar_type() != at::kBFloat16;
  if (!plain) host = values.to(at::kCPU, at::kFloat);  // until the GPU has them it works, and does not wait for ranks
  const Stopwatch clock;
  std::vector<at::Tensor> tensors = {host};
  finish([&] { return backend_->allreduce(tensors); });
  waited_s_ += clock.seconds();
  if (!plain) values.copy_(host);
}

void Ranks::broadcast(at::Tensor& values) {
  at::Tensor host = values.to(at::kCPU);
  std::vector<at::Tensor> tensors = {host};
  finish([&] { return backend_->broadcast(tensors); });
  if (!values.is_cpu()) values.copy_(host);
}

std::vector<std::string> Ranks::gather(const std::string& text) {
  const auto all_of = [&](at::Tensor own) {
    std::vector<std::vector<at::Tensor>> all(1);
    for (int rank = 0; rank < place_.count; ++rank) all.front().push_back(at::empty_like(own));
    std::vector<at::Tensor> mine = {std::move(own)};
    finish([&] { return backend_->allgather(all, mine); });
    return all.front();
  };
  std::vector<int64_t> sizes;
  for (const at::Tensor& size : all_of(at::full({1}, static_cast<int64_t>(text.size()), at::kLong))) {
    sizes.push_back(size.item<int64_t>());
  }
  at::Tensor bytes = at::zeros({*std::max_element(sizes.begin(), sizes.end()) + 1}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  std::vector<std::string> texts;
  for (const at::Tensor& of_rank : all_of(bytes)) {
    texts.emplace_back(static_cast<const char*>(of_rank.const_data_ptr()), static_cast<size_t>(sizes[texts.size()]));
  }
  return texts;
}

void Ranks::wait_for_all() {
  c10d::BarrierOptions options;
  options.timeout = std::chrono::hours(24);
  finish([&] { return backend_->barrier(options); });
}

}  // namespace myxtts
