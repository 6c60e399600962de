// Which rank of a run was lost, found by heartbeats, and said by all others in the same words.
#pragma once

#include "train/rank_store.h"

#include <string>
#include <vector>

namespace myxtts {

// Per rank, how often its heart beat and how many messages it came to: "12 340". Empty before its first beat.
std::vector<std::string> beats_in(const RankStore& store, int count);

// The verdict about a lost rank: the first one's.
std::string agree(const RankStore& store, const std::string& verdict);

// Who was lost: whoever said so first; else those whose hearts no longer beat; else, if this rank waited `in_vain`,
// those that came to fewer messages than others.
std::string find_lost(const RankStore& store, const RankPlace& place, const std::string& reason, bool in_vain);

// The store goes with the rank that serves it: first all others that live have heard why this one ends.
void stay_until_heard(const RankStore& store, const RankPlace& place);

std::string names_of(const std::vector<int>& ranks);  // "ranks 1, 2 and 5 more"

}  // namespace myxtts
