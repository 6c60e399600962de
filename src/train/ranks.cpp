#include "train/ranks.h"

#include "base/counted.h"
#include "base/error.h"
#include "base/system_calls.h"
#include "device/device.h"
#include "train/device_sum.h"
#include "train/rank_backend.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <utility>

#include <ATen/ATen.h>
#include <arpa/inet.h>
#include <c10/util/Logging.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <unistd.h>

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
  return c10::make_intrusive<c10d::PrefixStore>("myxtts/" + place.run,
                                                c10::make_intrusive<c10d::TCPStore>(place.address, options));
}

void put(const Store& store, const std::string& key, const std::string& text) {
  store->set(key, std::vector<uint8_t>(text.begin(), text.end()));
}
std::string text_from(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }
std::string take(const Store& store, const std::string& key) { return text_from(store->get(key)); }
Store within(const std::string& prefix, const Store& store) {
  return c10::make_intrusive<c10d::PrefixStore>(prefix, store);
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
  return text_from(store->compareSet("verdict", {}, std::vector<uint8_t>(verdict.begin(), verdict.end())));
}

// What a store answers; nothing if it does not, because whoever serves it is gone or hangs.
template <typename Ask, typename Answer = std::invoke_result_t<Ask>>
std::optional<Answer> in_time(Ask ask) {
  constexpr std::chrono::seconds patience(15);
  std::promise<std::optional<Answer>> answer;
  std::future<std::optional<Answer>> answered = answer.get_future();
  std::thread([ask = std::move(ask), answer = std::move(answer)]() mutable {
    try {
      answer.set_value(ask());
    } catch (const std::exception&) {
      answer.set_value(std::nullopt);
    }
  }).detach();  // it may wait for ever
  return answered.wait_for(patience) == std::future_status::ready ? answered.get() : std::nullopt;
}

std::string names_of(const std::vector<int>& ranks) {
  constexpr size_t listed = 8;
  const std::vector<int> first(ranks.begin(), ranks.begin() + static_cast<ptrdiff_t>(std::min(listed, ranks.size())));
  return fmt::format("rank{} {}{}", ranks.size() == 1 ? "" : "s", fmt::join(first, ", "),
                     ranks.size() > listed ? fmt::format(" and {} more", ranks.size() - listed) : "");
}

// Per rank, how often its heart beat and how many messages it came to: "12 340". Empty before its first beat.
std::vector<std::string> beats_in(const Store& store, int count) {
  std::vector<std::string> keys, beats;
  for (int rank = 0; rank < count; ++rank) keys.push_back(key_of("beat", rank));
  if (store->check(keys)) {
    for (const std::vector<uint8_t>& beat : store->multiGet(keys)) beats.push_back(text_from(beat));
  } else {
    for (const std::string& key : keys) beats.push_back(store->check({key}) ? take(store, key) : "");
  }
  return beats;
}

int64_t messages_in(const std::string& beat) {
  int64_t messages = -1;
  const size_t space = beat.find(' ');
  if (space != std::string::npos) std::from_chars(beat.data() + space + 1, beat.data() + beat.size(), messages);
  return messages;
}

// Who was lost: whoever said so first; else those whose hearts no longer beat; else, if this rank waited `in_vain`,
// those that came to fewer messages than others.
std::string find_lost(const Store& store, const RankPlace& place, const std::string& reason, bool in_vain) {
  constexpr double listens_s = 5;
  constexpr milliseconds pause(200);
  const Stopwatch clock;
  const std::vector<std::string> before = beats_in(store, place.count);
  while (clock.seconds() < listens_s) {
    if (store->check({"verdict"})) return take(store, "verdict");
    std::this_thread::sleep_for(pause);
  }
  const std::vector<std::string> after = beats_in(store, place.count);
  int64_t fewest = std::numeric_limits<int64_t>::max(), most = -1;
  for (const std::string& beat : before) {
    fewest = std::min(fewest, messages_in(beat)), most = std::max(most, messages_in(beat));
  }
  std::vector<int> silent, behind;
  for (size_t rank = 0; rank < after.size(); ++rank) {
    if (after[rank] == before[rank]) silent.push_back(static_cast<int>(rank));
    if (messages_in(before[rank]) == fewest) behind.push_back(static_cast<int>(rank));
  }
  const auto sentence = [&](const std::vector<int>& ranks, const char* one, const char* many) {
    return fmt::format("{} of {} {}", names_of(ranks), place.count, ranks.size() == 1 ? one : many);
  };
  if (!silent.empty()) return agree(store, sentence(silent, "no longer answers", "no longer answer"));
  if (in_vain && fewest < most) {
    return agree(store,
                 sentence(behind, "hangs: others waited for it in vain", "hang: others waited for them in vain"));
  }
  return agree(store, fmt::format("rank {} lost its connection to another: {}", place.rank, reason));
}

std::string unique_word() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}-{}", random(), random(), ::getpid());
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
  try {
    find_meeting();
    compare(version);
    backend_ = make_host_backend(store_, place_, to_ms(timeout_s));
    heart_store_ = within(meeting_, connect(place_, false, timeout_s));
  } catch (const Error&) {
    throw;
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

// torchrun keeps its store when it starts ranks again, and each machine counts restarts for itself: what lies in the
// store may be of ranks that are gone. Each rank says hello with a word that no other has. Rank 0 answers each word
// with the meeting's name until that rank is there.
void Ranks::find_meeting() {
  constexpr milliseconds pause(50);
  constexpr double grace_s = 10;
  const std::string word = unique_word();
  const Stopwatch clock;
  if (place_.rank > 0) {
    put(store_, key_of("hello", place_.rank), word);
    const std::string key = key_of("welcome", place_.rank);
    while (meeting_.empty()) {
      const std::string answer = store_->check({key}) ? take(store_, key) : "";
      if (answer.starts_with(word + " ")) {
        meeting_ = answer.substr(word.size() + 1);
      } else if (clock.seconds() > timeout_s_ + grace_s) {
        reject_input("ranks", "rank 0 of {} did not come within {:.0f} s", place_.count, timeout_s_,
                     way_out("begin all ranks with the same program and settings"));
      } else {
        std::this_thread::sleep_for(pause);
      }
    }
    store_ = within(meeting_, store_);
    return;
  }
  meeting_ = word;
  const Store here = within(meeting_, store_);
  std::set<int> missing;
  for (int rank = 1; rank < place_.count; ++rank) missing.insert(rank);
  while (clock.seconds() < timeout_s_) {
    std::erase_if(missing, [&](int rank) {
      if (here->check({key_of("here", rank)})) return true;
      const std::string hello = key_of("hello", rank);
      if (store_->check({hello})) put(store_, key_of("welcome", rank), take(store_, hello) + " " + meeting_);
      return false;
    });
    if (missing.empty()) break;
    std::this_thread::sleep_for(pause);
  }
  store_ = here;  // compare() names those that are missing
}

// Rank 0 reads who is there and where it runs, and answers all of them at once.
void Ranks::compare(const std::string& version) {
  const RankHome own = own_home();
  if (place_.rank > 0) {
    put(store_, key_of("here", place_.rank), nlohmann::json{version, own.machine, own.cores}.dump());
  } else {
    std::vector<int> missing;
    std::string difference;
    std::vector<RankHome> homes = {own};
    for (int rank = 1; rank < place_.count; ++rank) {
      const std::string key = key_of("here", rank);
      if (!store_->check({key})) {
        missing.push_back(rank);
        continue;
      }
      const nlohmann::json theirs = nlohmann::json::parse(take(store_, key));
      const auto theirs_version = theirs[0].get<std::string>();
      if (theirs_version != version && difference.empty()) {
        difference = fmt::format("rank {} is {}, rank 0 {}", rank, theirs_version, version);
      }
      homes.push_back({theirs[1].get<std::string>(), theirs[2].get<std::string>()});
    }
    if (!missing.empty()) {
      difference = fmt::format("{} of {} did not come within {:.0f} s", names_of(missing), place_.count, timeout_s_);
    }
    for (size_t rank = 0; rank < homes.size() && difference.empty(); ++rank) {
      const Neighbours found = neighbours(homes, rank);
      put(store_, key_of("neighbours", static_cast<int>(rank)),
          fmt::format("{} {} {}", found.before, found.on_machine, found.on_cores));
    }
    put(store_, "answer", difference);
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
  if (!difference.empty()) {
    const Stopwatch clock;
    constexpr double most_s = 5;
    while (place_.rank == 0 && !place_.store_is_served && store_->add("answered", 0) + 1 < place_.count &&
           clock.seconds() < most_s) {
      std::this_thread::sleep_for(milliseconds(50));
    }
    reject_input("ranks", "{}", difference, way_out("begin all ranks with the same program and settings"));
  }
  Neighbours found;
  std::istringstream(take(store_, key_of("neighbours", place_.rank))) >> found.before >> found.on_machine >>
      found.on_cores;
  if (place_.local < 0) place_.local = found.before;
  if (place_.on_machine == 0) place_.on_machine = std::max(found.on_machine, place_.local + 1);
  place_.on_cores = found.on_cores;
}

// The store goes with the rank that serves it: first all others that live have heard why this one ends.
void Ranks::stay_until_heard() {
  if (place_.rank != 0 || place_.store_is_served) return;
  constexpr double most_s = 60, listens_s = 5;
  constexpr milliseconds pause(100);
  const Stopwatch clock;
  Stopwatch listened;
  std::vector<std::string> before = beats_in(store_, place_.count);
  std::set<int> missing;
  for (int rank = 1; rank < place_.count; ++rank) missing.insert(rank);
  while (clock.seconds() < most_s) {
    std::erase_if(missing, [&](int rank) { return store_->check({key_of("heard", rank)}); });
    if (missing.empty()) return;
    std::this_thread::sleep_for(pause);
    if (listened.seconds() < listens_s) continue;
    std::vector<std::string> after = beats_in(store_, place_.count);
    std::erase_if(missing, [&](int rank) {
      const auto at = static_cast<size_t>(rank);
      return after[at] == before[at];
    });
    before = std::move(after);
    listened.restart();
  }
}

void Ranks::beat() {
  constexpr milliseconds every(1000);
  try {
    for (int64_t beats = 1;; ++beats) {
      // Without an answer to wait for.
      put(heart_store_, key_of("beat", place_.rank), fmt::format("{} {}", beats, messages_.load()));
      if (watches_) watch();
      std::unique_lock lock(mutex_);
      if (ends_.wait_for(lock, every, [this] { return ended_; })) return;
    }
  } catch (const std::exception&) {  // the store is gone with whoever served it: the next message finds that out
    if (watches_) end_sums();
  }
}

// On a GPU the thread that trains may be waiting for sums with a rank that is gone. Each rank looks at the next one.
void Ranks::watch() {
  constexpr double stands_s = 10, silent_s = 20;
  if (sums_have_ended_ || place_.count < 2) return;
  if (const int64_t messages = messages_; messages != watched_.messages) {
    watched_.messages = messages;
    watched_.message_came.restart();
  }
  const int next = (place_.rank + 1) % place_.count;
  const auto beat = in_time([store = watch_store_, next] {
    return store->check({"verdict"}) ? std::string() : take(store, key_of("beat", next));
  });
  if (beat && beat->empty()) return end_sums();
  if (beat && *beat != watched_.beat) {
    watched_.beat = *beat;
    watched_.beat_came.restart();
  }
  const double waited_s = watched_.message_came.seconds();
  if (waited_s < stands_s || (waited_s < timeout_s_ && watched_.beat_came.seconds() < silent_s)) return;
  if (beat) {
    in_time([store = watch_store_, place = place_, waited_s] {
      return find_lost(store, place, fmt::format("its GPU waited {:.0f} s for others", waited_s), true);
    });
  }
  end_sums();
}

void Ranks::end_sums() noexcept {
  if (device_sum_ && !sums_have_ended_.exchange(true)) device_sum_->abort();
}

void Ranks::check() {
  if (sums_have_ended_) lost("the sums on its GPU were ended");
}

// In a thread of its own: the backend waits for what it has begun, and a barrier's time is hours.
void Ranks::hang_up() {
  std::thread([ended = std::exchange(backend_, nullptr)] {}).detach();
}

void Ranks::lost(const std::string& reason, bool in_vain) {
  told_ = true;
  end_sums();  // so that nothing waits for the GPU on the way out
  const std::optional<std::string> found =
      in_time([store = store_, place = place_, reason = reason.substr(0, reason.find('\n')), in_vain] {
        std::string verdict = find_lost(store, place, reason, in_vain);
        put(store, key_of("heard", place.rank), "");
        return verdict;
      });
  hang_up();  // so that ranks that still wait for this one find out too
  if (found) stay_until_heard();
  const std::string unanswered = place_.store_is_served ? "torchrun, where the ranks meet, no longer answers"
                                                        : fmt::format("rank 0 of {} no longer answers", place_.count);
  fail("ranks", "{}", found.value_or(unanswered),
       way_out("the newest checkpoint is whole, and the same command resumes from it"));
}

void Ranks::leave(const std::string& why) noexcept {
  try {
    if (std::exchange(told_, true)) return;
    end_sums();
    const std::string text = fmt::format("rank {} stopped: {}", place_.rank, why);
    const std::optional<std::string> agreed = in_time([store = store_, text, rank = place_.rank] {
      std::string first = agree(store, text);
      put(store, key_of("heard", rank), "");
      return first;
    });
    hang_up();  // the others find out, and read why
    if (agreed) stay_until_heard();
  } catch (const std::exception&) {  // nobody is left to hear it
  }
}

void Ranks::finish(const std::function<c10::intrusive_ptr<c10d::Work>()>& start, bool however_long) {
  check();
  ++messages_;
  const Stopwatch clock;
  try {
    const c10::intrusive_ptr<c10d::Work> work = start();
    if (however_long) wait_while_all_live(*work);
    work->wait();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    constexpr double nearly = 0.9;
    lost(error.what(), clock.seconds() > nearly * timeout_s_);
  }
}

void Ranks::wait_while_all_live(c10d::Work& work) {
  constexpr milliseconds pause(5);
  constexpr double few_beats_s = 5;
  const double silent_s = std::max(few_beats_s, timeout_s_), listens_s = std::min(few_beats_s, timeout_s_ / 4);
  std::vector<std::string> seen(static_cast<size_t>(place_.count));
  std::vector<Stopwatch> since(seen.size());
  Stopwatch listened;
  while (!work.isCompleted()) {
    std::this_thread::sleep_for(pause);
    if (listened.seconds() < listens_s) continue;
    const auto beats = in_time([store = store_, count = place_.count] { return beats_in(store, count); });
    for (size_t rank = 0; rank < seen.size(); ++rank) {
      if (beats && (*beats)[rank] != seen[rank]) seen[rank] = (*beats)[rank], since[rank].restart();
      if (since[rank].seconds() > silent_s) lost("it waited for the others in vain");
    }
    listened.restart();
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

std::vector<int64_t> Ranks::largest(const std::vector<int64_t>& numbers) {
  const Stopwatch clock;
  std::vector<at::Tensor> tensors = {at::tensor(numbers, at::kLong)};
  c10d::AllreduceOptions options;
  options.reduceOp = c10d::ReduceOp::MAX;
  finish([&] { return backend_->allreduce(tensors, options); });
  waited_s_ += clock.seconds();
  const auto* const found = tensors.front().const_data_ptr<int64_t>();
  return {found, found + numbers.size()};
}

void Ranks::broadcast(at::Tensor& values) {
  at::Tensor host = values.to(at::kCPU);
  std::vector<at::Tensor> tensors = {host};
  finish([&] { return backend_->broadcast(tensors); });
  if (!values.is_cpu()) values.copy_(host);
}

std::string Ranks::broadcast(const std::string& text) {
  at::Tensor size = at::full({1}, static_cast<int64_t>(text.size()), at::kLong);
  broadcast(size);
  at::Tensor bytes = at::zeros({size.item<int64_t>() + 1}, at::kByte);  // never empty
  if (writes()) std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  broadcast(bytes);
  return {static_cast<const char*>(bytes.const_data_ptr()), static_cast<size_t>(size.item<int64_t>())};
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

void Ranks::sum_on_devices(int device) {
  const std::string library = device < 0 ? "" : device_sum_library();
  const std::vector<std::string> libraries = gather(library);
  // As NCCL tells machines apart.
  const char* const host = std::getenv("NCCL_HOSTID");
  const std::vector<std::string> cards =
      gather(library.empty() ? "" : (host != nullptr ? host : own_home().machine) + " " + device_bus_id(device));
  const WayOut way = way_out("give training.rank_sum: host");
  for (size_t rank = 0; rank < libraries.size(); ++rank) {
    if (libraries[rank].empty()) {
      reject_input("ranks", "training.rank_sum is nccl, but rank {} has no {}", rank, device < 0 ? "GPU" : "NCCL", way);
    }
    if (libraries[rank] != libraries.front()) {
      reject_input("ranks", "rank {} has {}, rank 0 {}", rank, libraries[rank], libraries.front(), way);
    }
  }
  if (std::set(cards.begin(), cards.end()).size() < cards.size()) {
    reject_input("ranks", "training.rank_sum is nccl, but ranks share a GPU", way);
  }
  const std::string id = broadcast(writes() ? make_device_sum_id() : std::string());
  device_sum_ = make_device_sum(id, place_.rank, place_.count, device, timeout_s_);
  watch_store_ = within(meeting_, connect(place_, false, timeout_s_));
  watched_.message_came.restart(), watched_.beat_came.restart();
  watches_ = true;
}

void Ranks::wait_for_all() {
  c10d::BarrierOptions options;
  options.timeout = std::chrono::hours(24 * 30);
  finish([&] { return backend_->barrier(options); }, /*however_long=*/true);
}

}  // namespace myxtts
