// The loader: reads, decodes and transforms the clips of coming batches on threads of its own, so that a batch is ready
// when it is asked for. A ring of ready batches lies on the device of the model; nothing in it grows.
//
//   plan ─► rows (many threads: read, decode) ─► finish (one thread, in the plan's order) ─► ready ring ─► next()
#pragma once

#include "corpus/corpus.h"
#include "device/device.h"
#include "loader/batch.h"
#include "loader/row_builder.h"
#include "plan/batch_plan.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace myxtts {

struct LoaderOptions {
  std::vector<std::string> arrays = voice_arrays();  // that each batch holds
  int device = -1;                                   // -1: the CPU
  size_t workers = 1;                                // threads that read and decode
  size_t ring_batches = 50;                          // batches that are ready or on their way
  size_t reading_batches = 8;                        // of those, how many are being read at a time
  bool pinned = false;                               // ready batches in pinned memory (CPU)
  bool overlap = true;            // false: a batch's copy and features are done before the next one's begin (GPU)
  uint64_t gpu_cache_bytes = 0;   // clips kept on the GPU: the first ones that come, and always the same
  uint64_t host_cache_bytes = 0;  // then in pinned host memory (GPU, separate files)
  uint64_t epoch = 0, index = 0;  // where to begin
  uint64_t rank = 0, world_size = 1;
  bool native = true;  // false: the slow path
  // Changes the number of workers that read, of batches in the ring and of batches read at a time by what was waited
  // for, and says why, in the thread that calls next().
  bool tune = false;
  size_t min_workers = 1;                                   // at most `workers`
  size_t min_ring_batches = 2;                              // at most `ring_batches`
  size_t min_reading_batches = 2, max_reading_batches = 0;  // 0: `reading_batches`
  std::function<void(const std::string&)> say = {};
};

// Where the time goes. A stage that others wait for is the one that limits.
struct LoaderStats {
  uint64_t batches = 0;
  double seconds_of_audio = 0;
  uint64_t bytes_read = 0;
  double rows_busy_s = 0;               // of all workers together
  double read_s = 0, features_s = 0;    // of that; the rest is decoding
  double rows_wait_s = 0;               // workers without a row: the ring is full, or the plan is slower
  double begin_busy_s = 0;              // laying out batches, and waiting for memory that is still being copied from
  double finish_busy_s = 0;             // handing batches to the device
  double plan_waits_for_room_s = 0;     // the ring is full of batches that are ready or being read
  double plan_waits_for_reading_s = 0;  // as many batches as may be are being read
  double finish_waits_for_rows_s = 0;   // reading is slower
  size_t active_workers = 0, ring_batches = 0, reading_batches = 0;  // as tuned
  size_t ready_batches = 0;                                          // now
  double consumer_waits_s = 0;                                       // the loader is slower
};

// Batch after batch, for one consumer.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // Waits until the next batch of the plan is ready, epoch after epoch, and makes `consumer` wait for what is still
  // being done on the device. The batch stays as it is while its lease is held; when the last holder lets go, on any
  // thread, its memory is used again once what `consumer` has been given by then is done. Leases may outlive the
  // source. Throws what a stage threw, with the clip's name, and Error if every place of the ring is leased.
  virtual BatchLease next(StreamHandle consumer = nullptr) = 0;

  // Waits at most so long for a batch. True if next() would not wait; throws where it would throw because every place
  // is leased. For a consumer that must look after something else between waits.
  virtual bool wait(std::chrono::milliseconds) { return true; }

  virtual LoaderStats stats() const = 0;

  // Whoever waits in next(), or calls it later, gets an error. Any thread.
  virtual void stop() {}
};

class LoaderBackend;

class Loader : public BatchSource {
 public:
  // Both references are kept.
  Loader(const Corpus& corpus, const BatchPlan& plan, const LoaderOptions& options);
  // With a backend of one's own.
  Loader(const Corpus& corpus, const BatchPlan& plan, const LoaderOptions& options,
         std::unique_ptr<LoaderBackend> backend);
  ~Loader() override;  // cancels batches in flight and joins all threads
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  BatchLease next(StreamHandle consumer = nullptr) override;
  bool wait(std::chrono::milliseconds most) override;
  LoaderStats stats() const override;  // any thread
  void stop() override;

 private:
  struct State;
  std::shared_ptr<State> state_;  // leases share it
};

// The loader that the options ask for.
std::unique_ptr<BatchSource> open_loader(const Corpus& corpus, const BatchPlan& plan, const LoaderOptions& options);

}  // namespace myxtts
