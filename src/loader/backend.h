// What a device does for the loader. The loader decides when; each method is called by one thread at a time, except
// `make_row`, which many threads call for different rows.
#pragma once

#include "loader/loader.h"

#include <atomic>
#include <exception>
#include <memory>
#include <vector>

namespace myxtts {

// One place in the ring.
struct LoaderSlot {
  size_t number = 0;
  uint64_t sequence = 0;
  Batch batch;
  PlannedBatch planned;
  std::atomic<size_t> rows_left = 0;
  std::vector<std::vector<BadClip>> bad;  // per row
  std::atomic<int64_t> first_row_ns = 0, rows_done_ns = 0, read_ns = 0, decode_ns = 0, features_ns = 0;
  std::atomic<uint64_t> bytes_read = 0;
  std::atomic<bool> failed = false;
  std::exception_ptr error;
};

class LoaderBackend {
 public:
  virtual ~LoaderBackend() = default;

  // Before the rows: may wait for memory. Returns the rows that need a worker.
  virtual std::vector<size_t> begin(LoaderSlot& slot) = 0;
  // Reads a row's clip, or its substitute. Returns the bytes read.
  virtual uint64_t make_row(LoaderSlot& slot, size_t row) = 0;
  // After the rows, in the plan's order.
  virtual void finish(LoaderSlot& slot) = 0;
  // The consumer takes the batch; its last holder, on any thread, gives it back.
  virtual void take(LoaderSlot& slot, StreamHandle consumer) = 0;
  virtual void give_back(LoaderSlot& slot, StreamHandle consumer) = 0;
  // Nothing more will come: whoever waits in begin() is to return.
  virtual void stop() = 0;
};

std::unique_ptr<LoaderBackend> make_cpu_backend(const Corpus& corpus, const BatchPlan& plan,
                                                const LoaderOptions& options);
std::unique_ptr<LoaderBackend> make_gpu_backend(const Corpus& corpus, const BatchPlan& plan,
                                                const LoaderOptions& options);

}  // namespace myxtts
