// A batch's four arrays in one piece of memory, wherever that lies.
#pragma once

#include "loader/loader.h"

#include <array>
#include <cstddef>

namespace myxtts {

// Of the plan's largest batch, for one rank.
size_t largest_batch_bytes(const BatchPlan& plan, int n_mels, uint64_t world_size);

// Points the batch's arrays into `memory`. Its sizes are set.
void lay_out(LoadedBatch& batch, std::byte* memory);

struct BatchArray {
  std::byte* data = nullptr;
  size_t bytes = 0;
};
std::array<BatchArray, 4> arrays_of(const LoadedBatch& batch);

}  // namespace myxtts
