// The store at which ranks meet, and in which they leave each other words. Any thread; a connection serves one at a
// time.
#pragma once

#include "train/rank_place.h"

#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace myxtts {

using RankStore = c10::intrusive_ptr<c10d::Store>;

inline std::chrono::milliseconds to_ms(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3));
}

// A connection of its own. Whoever serves the store says through `warn` if more than the others can reach it. Throws
// what libtorch throws if nobody answers within the time.
RankStore connect(const RankPlace& place, bool serves, double timeout_s,
                  const std::function<void(const std::string&)>& warn = {});

// The same store, with keys of its own.
RankStore within(const std::string& prefix, const RankStore& store);

std::string key_of(const char* what, int rank);
void put(const RankStore& store, const std::string& key, const std::string& text);
std::string take(const RankStore& store, const std::string& key);  // waits until it is there
// The text that was put first, by whichever rank.
std::string put_first(const RankStore& store, const std::string& key, const std::string& text);

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

}  // namespace myxtts
