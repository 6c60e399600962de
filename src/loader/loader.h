// The loader: reads, decodes and transforms the clips of coming batches on threads of its own, so that a batch is ready
// when it is asked for. A ring of ready batches lies on the device where the model is; nothing in it grows.
//
//   plan ─► rows (many threads: read, decode) ─► finish (one thread, in the plan's order) ─► ready ring ─► next()
#pragma once

#include "corpus/corpus.h"
#include "corpus/quarantine.h"
#include "device/device.h"
#include "loader/batch.h"
#include "plan/batch_plan.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace myxtts {

struct LoaderOptions {
  int device = -1;                // -1: the CPU
  size_t workers = 1;             // threads that read and decode
  size_t ring_batches = 50;       // batches that are ready or on their way
  size_t reading_batches = 8;     // of those, how many are being read at a time
  bool pinned = false;            // ready batches in page-locked memory (CPU)
  bool overlap = true;            // false: a batch's copy and features are done before the next one's begin (GPU)
  uint64_t gpu_cache_bytes = 0;   // clips kept on the GPU: the first ones that come, and always the same
  uint64_t host_cache_bytes = 0;  // then in page-locked host memory (GPU, separate files)
  uint64_t epoch = 0, index = 0;  // where to begin
  uint64_t rank = 0, world_size = 1;
  bool native = true;  // false: the slow path
  // Changes the number of workers that read, of batches in the ring and of batches read at a time by what was waited
  // for, and says why, in the thread that calls next().
  bool tune = false;
  size_t least_workers = 1;                                    // at most `workers`
  size_t least_ring_batches = 2;                               // at most `ring_batches`
  size_t least_reading_batches = 2, most_reading_batches = 0;  // 0: `reading_batches`
  std::function<void(const std::string&)> say = {};
};

// A batch's way through the stages: when each was done with it, on the clock of now_ns(), and what its rows took.
struct BatchTimes {
  int64_t planned_ns = 0;    // it got a place in the ring
  int64_t reading_ns = 0;    // a worker took its first row
  int64_t rows_done_ns = 0;  // the last row was read, decoded and, on the CPU, transformed
  int64_t finished_ns = 0;   // it was handed to the device: ready
  // Of all workers together.
  double read_s = 0, decode_s = 0, features_s = 0;
  uint64_t bytes_read = 0;
};

// A batch in the ring, on the loader's device. Valid until the next call of next().
struct LoadedBatch {
  uint64_t epoch = 0, index = 0;
  size_t shape = 0;
  int64_t rows = 0, text_length = 0, mel_frames = 0;
  int n_mels = 0;
  int32_t* tokens = nullptr;        // [rows, text_length]
  int32_t* text_lengths = nullptr;  // [rows]
  int32_t* mel_lengths = nullptr;   // [rows]
  float* mel = nullptr;             // [rows, mel_frames, n_mels]
  std::vector<uint32_t> clips;      // what is in the rows: numbers in the index, or no_clip
  std::vector<BadClip> replaced;
  double seconds = 0;  // of audio
  BatchTimes times;
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
  // being done on the device. The batch before is given back: its memory is used again once what `consumer` has been
  // given so far is done. Throws what a stage threw, with the clip's name.
  virtual const LoadedBatch& next(StreamHandle consumer = nullptr) = 0;

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
  ~Loader() override;  // at once, wherever it is
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  const LoadedBatch& next(StreamHandle consumer = nullptr) override;
  LoaderStats stats() const override;  // any thread
  void stop() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A batch as plain memory, wherever it lies. `device` is the loader's.
Batch copy_to_host(const LoadedBatch& batch, int device);

// The loader that the options ask for.
std::unique_ptr<BatchSource> open_loader(const Corpus& corpus, const BatchPlan& plan, const LoaderOptions& options);

}  // namespace myxtts
