// How the ranks of one attempt find each other at a store, and learn where each of them runs.
#pragma once

#include "train/rank_store.h"

#include <string>

namespace myxtts {

struct RankMeeting {
  std::string name;  // no other attempt's
  RankStore store;   // with keys of this attempt alone
};

// Waits for all ranks. Completes `place` by who runs on this rank's machine. Throws Error if some do not come, or are
// of another version.
RankMeeting meet(const RankStore& store, RankPlace& place, const std::string& version, double timeout_s);

}  // namespace myxtts
