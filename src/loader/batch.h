// A batch: a few named arrays in a static shape, padded with zeros, and what is known of its rows on the host. Nothing
// downstream asks the corpus index again.
//
// A batch is held by a lease; its memory belongs to the loader's backend. When the last holder lets go, its place in
// the ring is free again. On a GPU the next copy into it waits, on the device, for the work that the consumer's stream
// had been given by then; work on other streams is the holder's to finish first.
#pragma once

#include "corpus/quarantine.h"
#include "loader/array.h"

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace myxtts {

// Timestamps of a batch's way through the stages, on the clock of now_ns(), and the time its rows took.
struct BatchTimes {
  int64_t planned_ns = 0;    // it got a place in the ring
  int64_t reading_ns = 0;    // a worker took its first row
  int64_t rows_done_ns = 0;  // the last row was read, decoded and, on the CPU, transformed
  int64_t finished_ns = 0;   // it was handed to the device: ready
  // Of all workers together.
  double read_s = 0, decode_s = 0, features_s = 0;
  uint64_t bytes_read = 0;
};

// Valid lengths of a row; 0 in an empty one.
struct RowLength {
  int32_t tokens = 0, mel_frames = 0;
  double seconds = 0;  // of audio
};

struct Batch {
  uint64_t epoch = 0, index = 0;
  size_t shape = 0;                // number in the plan
  std::vector<Array> arrays;       // in the order in which they were declared
  std::vector<uint32_t> clips;     // what is in the rows: numbers in the corpus index, or no_clip
  std::vector<RowLength> lengths;  // per row
  std::vector<BadClip> replaced;   // clips that could not be read; in validation their rows are empty
  double seconds = 0;              // of audio
  BatchTimes times;

  int64_t rows() const { return static_cast<int64_t>(clips.size()); }
  int64_t valid_frames() const;
  int64_t padded_frames() const;  // of the mel, valid or not

  // Throws Error if the batch holds no such array.
  const Array& operator[](std::string_view name) const;

  // 64-bit content hash of all arrays, which lie in host memory.
  uint64_t hash() const;
};

using BatchLease = std::shared_ptr<const Batch>;

// Bytes of all arrays in one piece of memory, each aligned for copies and kernels.
size_t packed_bytes(const Batch& batch);

// Points the batch's arrays into one piece of memory of packed_bytes() on `device`.
void place_arrays(Batch& batch, std::byte* memory, int device);

// A copy in host memory that lives as long as its lease, wherever the batch lies.
BatchLease copy_to_host(const Batch& batch);

}  // namespace myxtts
