// Work on a GPU beside what comes next, on a stream of its own: gradients of weights, which nothing waits for before the
// update, fill what the chain of the other gradients leaves empty. On a CPU it is done at once.
#pragma once

#include <cstddef>
#include <functional>

namespace myxtts {

// What `work` holds stays alive until it is joined. `device` -1: the CPU.
void run_beside(int device, std::function<void()> work);

// The current stream goes on when all but the newest `left` pieces are done.
void join_beside(int device, size_t left = 0);

}  // namespace myxtts
