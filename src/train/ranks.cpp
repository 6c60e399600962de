#include "train/ranks.h"

#include "base/clock.h"
#include "base/counted.h"
#include "base/error.h"
#include "train/rank_backend.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include <ATen/ATen.h>
#include <c10/util/Logging.h>
#include <fmt/ranges.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace myxtts {
namespace {

using std::chrono::milliseconds;
using Store = c10::intrusive_ptr<c10d::Store>;

milliseconds to_ms(double seconds) { return milliseconds(static_cast<int64_t>(seconds * 1e3)); }

Store connect(const RankPlace& place, bool serves, double timeout_s) {
  c10d::TCPStoreOptions options;
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

std::string names_of(const std::vector<int>& ranks) {
  constexpr size_t listed = 8;
  const std::vector<int> first(ranks.begin(), ranks.begin() + static_cast<ptrdiff_t>(std::min(listed, ranks.size())));
  return fmt::format("rank{} {}{}", ranks.size() == 1 ? "" : "s", fmt::join(first, ", "),
                     ranks.size() > listed ? fmt::format(" and {} more", ranks.size() - listed) : "");
}

}  // namespace

Ranks::Ranks(const RankPlace& place, const std::string& version, double timeout_s)
    : place_(place), timeout_s_(timeout_s) {
  quieten_libtorch();
  try {
    store_ = connect(place, place.rank == 0 && !place.store_is_served, timeout_s);
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
    do {
      lock.unlock();
      heart_store_->add(key_of("beat", place_.rank), 1);
      lock.lock();
    } while (!ends_.wait_for(lock, every, [this] { return ended_; }));
  } catch (const std::exception&) {  // the store is gone with rank 0: the next message finds that out
  }
}

std::vector<int64_t> Ranks::beats() {
  std::vector<int64_t> all;
  for (int rank = 0; rank < place_.count; ++rank) all.push_back(store_->add(key_of("beat", rank), 0));
  return all;
}

std::string Ranks::verdict() { return store_->check({"verdict"}) ? take(store_, "verdict") : ""; }

// Who was lost: whoever said so first, or those whose hearts no longer beat.
std::string Ranks::find_lost(const std::string& reason) {
  constexpr double listens_s = 5;
  constexpr milliseconds pause(200);
  store_->setTimeout(to_ms(listens_s));
  const Stopwatch clock;
  const std::vector<int64_t> before = beats();
  while (clock.seconds() < listens_s) {
    if (const std::string known = verdict(); !known.empty()) {
      store_->add("heard", 1);
      return known;
    }
    std::this_thread::sleep_for(pause);
  }
  const std::vector<int64_t> after = beats();
  std::vector<int> silent;
  for (size_t rank = 0; rank < after.size(); ++rank) {
    if (after[rank] == before[rank]) silent.push_back(static_cast<int>(rank));
  }
  const std::string found =
      silent.empty() ? fmt::format("rank {} lost its connection to another: {}", place_.rank, reason)
                     : fmt::format("{} of {} no longer answer{}", names_of(silent), place_.count,
                                   silent.size() == 1 ? "s" : "");
  const std::vector<uint8_t> agreed = store_->compareSet("verdict", {}, std::vector<uint8_t>(found.begin(), found.end()));
  return {agreed.begin(), agreed.end()};
}

void Ranks::lost(const std::string& reason) {
  std::string found;
  try {
    found = find_lost(reason.substr(0, reason.find('\n')));
    backend_.reset();  // so that ranks that still wait for this one find out too
    stay_until_heard("heard");
  } catch (const std::exception&) {
    found = place_.store_is_served ? "torchrun, where the ranks meet, no longer answers"
                                   : fmt::format("rank 0 of {} no longer answers", place_.count);
  }
  fail("ranks", "{}", found, way_out("the newest checkpoint is whole, and the same command resumes from it"));
}

void Ranks::leave(const std::string& why) noexcept {
  try {
    const std::string text = fmt::format("rank {} stopped: {}", place_.rank, why);
    const std::vector<uint8_t> bytes(text.begin(), text.end());
    if (store_->compareSet("verdict", {}, bytes) != bytes) return;  // another one was first
    backend_.reset();                                               // the others find out, and read why
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
  const Stopwatch clock;
  at::Tensor host = values;
  const bool plain = values.is_cpu() && values.scalar_type() != at::kBFloat16;
  if (!plain) host = values.to(at::kCPU, at::kFloat);
  std::vector<at::Tensor> tensors = {host};
  finish([&] { return backend_->allreduce(tensors); });
  if (!plain) values.copy_(host);
  waited_s_ += clock.seconds();
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
