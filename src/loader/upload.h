// For batches that are made in host memory, by the CPU or by the slow path, while the model is on a GPU: each is copied
// when it is taken, in the consumer's own stream, and not before.
#pragma once

#include "loader/loader.h"

#include <memory>

namespace myxtts {

// `batch_bytes`: of the largest. The copy of a batch is waited for when the next one is asked for.
std::unique_ptr<BatchSource> upload_when_taken(std::unique_ptr<BatchSource> loader, int device, size_t batch_bytes);

}  // namespace myxtts
