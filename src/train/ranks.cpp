#include "train/ranks.h"

#include "base/error.h"
#include "device/device.h"
#include "train/device_sum.h"
#include "train/lost_rank.h"
#include "train/rank_backend.h"
#include "train/rank_meeting.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include <ATen/ATen.h>
#include <c10/util/Logging.h>

namespace myxtts {
namespace {

using std::chrono::milliseconds;

// What goes wrong is said in one sentence, not also in libtorch's warnings with their stacks.
void quieten_libtorch() {
  [[maybe_unused]] static const bool once = [] {
    constexpr int errors_alone = 2;
    if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = errors_alone;
    return true;
  }();
}

}  // namespace

Ranks::Ranks(const RankPlace& place, const std::string& version, double timeout_s,
             const std::function<void(const std::string&)>& warn)
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
    RankMeeting meeting = meet(store_, place_, version, timeout_s);
    meeting_ = std::move(meeting.name), store_ = std::move(meeting.store);
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
  if (found) stay_until_heard(store_, place_);
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
    if (agreed) stay_until_heard(store_, place_);
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
