#include "train/rank_meeting.h"

#include "base/clock.h"
#include "base/error.h"
#include "train/lost_rank.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

namespace myxtts {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds pause(50);
constexpr double grace_s = 10;  // rank 0's time counts, and the others hear of it

std::string unique_word() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}-{}", random(), random(), ::getpid());
}

std::string late_rank_0(const RankPlace& place, double timeout_s) {
  return fmt::format("rank 0 of {} did not come within {:.0f} s", place.count, timeout_s);
}

[[noreturn]] void refuse(const std::string& difference) {
  reject_input("ranks", "{}", difference, way_out("begin all ranks with the same program and settings"));
}

// torchrun keeps its store when it starts ranks again, and each machine counts restarts for itself: what lies in the
// store may be of ranks that are gone. Each rank says hello with a word that no other has. Rank 0 answers each word
// with the meeting's name until that rank is there.
RankMeeting find_as_other(const RankStore& store, const RankPlace& place, double timeout_s) {
  const std::string word = unique_word();
  const Stopwatch clock;
  put(store, key_of("hello", place.rank), word);
  const std::string key = key_of("welcome", place.rank);
  while (clock.seconds() < timeout_s + grace_s) {
    const std::string answer = store->check({key}) ? take(store, key) : "";
    if (answer.starts_with(word + " ")) {
      const std::string name = answer.substr(word.size() + 1);
      return {name, within(name, store)};
    }
    std::this_thread::sleep_for(pause);
  }
  refuse(late_rank_0(place, timeout_s));
}

RankMeeting find_as_first(const RankStore& store, const RankPlace& place, double timeout_s) {
  const std::string name = unique_word();
  const RankStore here = within(name, store);
  const Stopwatch clock;
  std::set<int> missing;
  for (int rank = 1; rank < place.count; ++rank) missing.insert(rank);
  while (clock.seconds() < timeout_s) {
    std::erase_if(missing, [&](int rank) {
      if (here->check({key_of("here", rank)})) return true;
      const std::string hello = key_of("hello", rank);
      if (store->check({hello})) put(store, key_of("welcome", rank), take(store, hello) + " " + name);
      return false;
    });
    if (missing.empty()) break;
    std::this_thread::sleep_for(pause);
  }
  return {name, here};  // answer_all() names those that are missing
}

// Rank 0 reads who is there and where it runs, and answers all of them at once.
void answer_all(const RankStore& store, const RankPlace& place, const RankHome& own, const std::string& version,
                double timeout_s) {
  std::vector<int> missing;
  std::string difference;
  std::vector<RankHome> homes = {own};
  for (int rank = 1; rank < place.count; ++rank) {
    const std::string key = key_of("here", rank);
    if (!store->check({key})) {
      missing.push_back(rank);
      continue;
    }
    const nlohmann::json theirs = nlohmann::json::parse(take(store, key));
    const auto theirs_version = theirs[0].get<std::string>();
    if (theirs_version != version && difference.empty()) {
      difference = fmt::format("rank {} is {}, rank 0 {}", rank, theirs_version, version);
    }
    homes.push_back({theirs[1].get<std::string>(), theirs[2].get<std::string>()});
  }
  if (!missing.empty()) {
    difference = fmt::format("{} of {} did not come within {:.0f} s", names_of(missing), place.count, timeout_s);
  }
  for (size_t rank = 0; rank < homes.size() && difference.empty(); ++rank) {
    const Neighbours found = neighbours(homes, rank);
    put(store, key_of("neighbours", static_cast<int>(rank)),
        fmt::format("{} {} {}", found.before, found.on_machine, found.on_cores));
  }
  put(store, "answer", difference);
}

// What keeps the ranks from working together; empty if nothing does.
std::string hear_answer(const RankStore& store, const RankPlace& place, double timeout_s) {
  try {
    store->wait({"answer"}, to_ms(timeout_s + grace_s));
    std::string difference = take(store, "answer");
    if (place.rank > 0) store->add("answered", 1);
    return difference;
  } catch (const std::exception&) {
    return late_rank_0(place, timeout_s);
  }
}

// The store goes with the rank that serves it.
void stay_until_answered(const RankStore& store, const RankPlace& place) {
  constexpr double most_s = 5;
  const Stopwatch clock;
  while (place.rank == 0 && !place.store_is_served && store->add("answered", 0) + 1 < place.count &&
         clock.seconds() < most_s) {
    std::this_thread::sleep_for(pause);
  }
}

void read_neighbours(const RankStore& store, RankPlace& place) {
  Neighbours found;
  std::istringstream(take(store, key_of("neighbours", place.rank))) >> found.before >> found.on_machine >>
      found.on_cores;
  if (place.local < 0) place.local = found.before;
  if (place.on_machine == 0) place.on_machine = std::max(found.on_machine, place.local + 1);
  place.on_cores = found.on_cores;
}

}  // namespace

RankMeeting meet(const RankStore& store, RankPlace& place, const std::string& version, double timeout_s) {
  RankMeeting meeting =
      place.rank == 0 ? find_as_first(store, place, timeout_s) : find_as_other(store, place, timeout_s);
  const RankHome own = own_home();
  if (place.rank == 0) {
    answer_all(meeting.store, place, own, version, timeout_s);
  } else {
    put(meeting.store, key_of("here", place.rank), nlohmann::json{version, own.machine, own.cores}.dump());
  }
  if (const std::string difference = hear_answer(meeting.store, place, timeout_s); !difference.empty()) {
    stay_until_answered(meeting.store, place);
    refuse(difference);
  }
  read_neighbours(meeting.store, place);
  return meeting;
}

}  // namespace myxtts
