// A batch made at once, on the CPU, outside of any ring: the slow path, samples for listening, and the reference that
// the loader is compared with.
#pragma once

#include "features/mel.h"
#include "loader/row_builder.h"

#include <cstddef>
#include <vector>

namespace myxtts {

// Fills one row of a batch in host memory, its mel included. Returns the bytes read.
uint64_t make_cpu_row(const RowBuilder& builder, MelCpu& mel, Batch& batch, std::byte* host, size_t row,
                      uint32_t planned, std::vector<BadClip>& bad);

// Reads and transforms the planned clips on up to `threads` threads. Throws Error if none of a row's substitutes can be
// read.
BatchLease make_batch(const RowBuilder& builder, const PlannedBatch& planned, size_t threads);

}  // namespace myxtts
