// Measurements of a short run of the real loader with a consumer: the input of a diagnosis.
#pragma once

#include "corpus/corpus.h"
#include "loader/consumer.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace myxtts {

struct ObservedBatch {
  size_t shape = 0;
  int64_t asked_ns = 0, taken_ns = 0, done_ns = 0;  // timestamps of the consumer, by now_ns()
  double wait_ms = 0;                               // time until the batch was ready
  size_t ready_batches = 0;                         // in the ring at the request
  BatchTimes times;
  double audio_s = 0;
  int64_t frames = 0, true_frames = 0;  // with and without padding

  double consume_ms() const { return static_cast<double>(done_ns - taken_ns) * 1e-6; }
  double batch_ms() const { return static_cast<double>(done_ns - asked_ns) * 1e-6; }
};

struct Observation {
  std::string consumer;
  std::vector<ObservedBatch> batches;
  LoaderStats before, after;  // over those batches
  double wall_s = 0, cpu_s = 0;
  std::optional<double>
      free_ms;  // a batch, where data cost nothing: cached batches consumed again; nothing: no time left
  std::optional<double> gpu_busy;  // share of the time
};

struct ObserveOptions {
  size_t batches = 50;
  size_t warm_up = 3;   // taken first and not counted
  double seconds = 20;  // in which all is to be over, with fewer batches where the consumer is slow
  std::function<void(size_t done)> progress = {};
};

// Ends the source before the cached batches are consumed again, so that nothing else uses the machine then. Takes two
// batches at least, whatever the time.
Observation observe(std::unique_ptr<BatchSource> source, const Consumer& consumer, const ObserveOptions& options);

}  // namespace myxtts
