// Deals the mel filters out to the 32 lanes of a warp: rounds in which every lane takes equally many taps. Lanes read
// neighbouring bins from shared memory, where two lanes of a half-warp collide when their places are equal modulo 16;
// weights of 0 before a filter's first bin move its place, so that few do.
#pragma once

#include "features/cuda/mel_kernels.h"
#include "features/filter_bank.h"

#include <vector>

namespace myxtts::gpu {

struct DealtFilters {
  std::vector<int> quads;  // per round: taps of a lane / 4
  std::vector<int> lanes_each;
  std::vector<FilterLane> lanes;  // [round][32]
  std::vector<float4> table;      // [round][quad][32]
  int collisions = 0;             // extra turns of shared memory that a pass over all rounds costs
};

// At least `min_rounds` rounds; `doubt_shares` may be empty.
DealtFilters deal_filters(const std::vector<MelFilter>& filters, const std::vector<float>& doubt_shares);

}  // namespace myxtts::gpu
