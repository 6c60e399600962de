// Schedules the mel filters on the 32 lanes of a warp, in rounds with an equal number of taps per lane. Leading zero
// weights shift the first bin of a filter, to avoid shared-memory bank conflicts within a half-warp.
#pragma once

#include "features/cuda/mel_kernels.h"
#include "features/filter_bank.h"

#include <vector>

namespace myxtts::gpu {

struct FilterSchedule {
  std::vector<int> quads;  // per round: taps per lane / 4
  std::vector<int> lanes_per_filter;
  std::vector<FilterLane> lanes;  // [round][32]
  std::vector<float4> table;      // [round][quad][32]
  int bank_conflicts = 0;         // extra shared-memory cycles of one pass over all rounds
};

// Creates at least `min_rounds` rounds; `rounding_thresholds` may be empty.
FilterSchedule schedule_filters(const std::vector<MelFilter>& filters, const std::vector<float>& rounding_thresholds);

}  // namespace myxtts::gpu
