#include "train/lost_rank.h"

#include "base/clock.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <set>

#include <fmt/ranges.h>

namespace myxtts {
namespace {

using std::chrono::milliseconds;

int64_t messages_in(const std::string& beat) {
  int64_t messages = -1;
  const size_t space = beat.find(' ');
  if (space != std::string::npos) std::from_chars(beat.data() + space + 1, beat.data() + beat.size(), messages);
  return messages;
}

}  // namespace

std::string names_of(const std::vector<int>& ranks) {
  constexpr size_t listed = 8;
  const std::vector<int> first(ranks.begin(), ranks.begin() + static_cast<ptrdiff_t>(std::min(listed, ranks.size())));
  return fmt::format("rank{} {}{}", ranks.size() == 1 ? "" : "s", fmt::join(first, ", "),
                     ranks.size() > listed ? fmt::format(" and {} more", ranks.size() - listed) : "");
}

std::vector<std::string> beats_in(const RankStore& store, int count) {
  std::vector<std::string> keys, beats;
  for (int rank = 0; rank < count; ++rank) keys.push_back(key_of("beat", rank));
  if (store->check(keys)) {
    for (const std::vector<uint8_t>& beat : store->multiGet(keys)) beats.emplace_back(beat.begin(), beat.end());
  } else {
    for (const std::string& key : keys) beats.push_back(store->check({key}) ? take(store, key) : "");
  }
  return beats;
}

std::string agree(const RankStore& store, const std::string& verdict) { return put_first(store, "verdict", verdict); }

std::string find_lost(const RankStore& store, const RankPlace& place, const std::string& reason, bool in_vain) {
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

void stay_until_heard(const RankStore& store, const RankPlace& place) {
  if (place.rank != 0 || place.store_is_served) return;
  constexpr double most_s = 60, listens_s = 5;
  constexpr milliseconds pause(100);
  const Stopwatch clock;
  Stopwatch listened;
  std::vector<std::string> before = beats_in(store, place.count);
  std::set<int> missing;
  for (int rank = 1; rank < place.count; ++rank) missing.insert(rank);
  while (clock.seconds() < most_s) {
    std::erase_if(missing, [&](int rank) { return store->check({key_of("heard", rank)}); });
    if (missing.empty()) return;
    std::this_thread::sleep_for(pause);
    if (listened.seconds() < listens_s) continue;
    std::vector<std::string> after = beats_in(store, place.count);
    std::erase_if(missing, [&](int rank) {
      const auto at = static_cast<size_t>(rank);
      return after[at] == before[at];
    });
    before = std::move(after);
    listened.restart();
  }
}

}  // namespace myxtts
