// What carries messages between ranks: a backend of c10d, libtorch's own layer under torch.distributed. A folder holds
// each: `gloo/` for host memory, or `no_gloo/` with a libtorch that was built without it.
#pragma once

#include "train/rank_place.h"

#include <chrono>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace myxtts {

// Connects to all other ranks, which must call this too. Throws when one of them does not within the timeout.
c10::intrusive_ptr<c10d::Backend> make_host_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    const RankPlace& place, std::chrono::milliseconds timeout);

}  // namespace myxtts
