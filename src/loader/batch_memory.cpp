#include "loader/batch_memory.h"

#include <algorithm>

namespace myxtts {
namespace {

constexpr size_t alignment = 256;  // what copies and kernels like

size_t aligned(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

std::array<size_t, 4> sizes_of(int64_t rows, int64_t text_length, int64_t mel_frames, int n_mels) {
  const auto count = static_cast<size_t>(rows);
  return {count * static_cast<size_t>(text_length) * sizeof(int32_t), count * sizeof(int32_t), count * sizeof(int32_t),
          count * static_cast<size_t>(mel_frames * n_mels) * sizeof(float)};
}

}  // namespace

size_t largest_batch_bytes(const BatchPlan& plan, int n_mels, uint64_t world_size) {
  size_t largest = 0;
  for (const Shape& shape : plan.shapes()) {
    const int64_t rows = shape.batch_size / static_cast<int64_t>(world_size);
    size_t bytes = 0;
    for (const size_t size : sizes_of(rows, shape.text_length, shape.mel_frames, n_mels)) bytes += aligned(size);
    largest = std::max(largest, bytes);
  }
  return largest;
}

void lay_out(LoadedBatch& batch, std::byte* memory) {
  const auto sizes = sizes_of(batch.rows, batch.text_length, batch.mel_frames, batch.n_mels);
  batch.tokens = reinterpret_cast<int32_t*>(memory);
  batch.text_lengths = reinterpret_cast<int32_t*>(memory += aligned(sizes[0]));
  batch.mel_lengths = reinterpret_cast<int32_t*>(memory += aligned(sizes[1]));
  batch.mel = reinterpret_cast<float*>(memory += aligned(sizes[2]));
}

std::array<BatchArray, 4> arrays_of(const LoadedBatch& batch) {
  const auto sizes = sizes_of(batch.rows, batch.text_length, batch.mel_frames, batch.n_mels);
  return {BatchArray{reinterpret_cast<std::byte*>(batch.tokens), sizes[0]},
          {reinterpret_cast<std::byte*>(batch.text_lengths), sizes[1]},
          {reinterpret_cast<std::byte*>(batch.mel_lengths), sizes[2]},
          {reinterpret_cast<std::byte*>(batch.mel), sizes[3]}};
}

}  // namespace myxtts
