// The Multi-GPU mode: takes batches from a loader on one device and carries them to another, where the model is. A
// thread of its own queues the copies; neither it nor the consumer waits for a device.
//
//   loader on the data device ─► copy ─► a few places on the model device ─► next()
#pragma once

#include "loader/loader.h"

#include <cstddef>
#include <memory>

namespace myxtts {

// What a crossing needs of the two devices: places on the model's, copies between them, and order among those. Tests
// have one in host memory.
class CrossingLink {
 public:
  virtual ~CrossingLink() = default;

  // What batches are taken with from the loader: copies are queued behind it.
  virtual StreamHandle stream() = 0;
  // The memory of a place on the model device.
  virtual std::byte* place(size_t number) = 0;
  // Queues the copy of `from` to `to`, which lies in that place, behind the consumer's last use of it. Crossing's
  // thread.
  virtual void carry(size_t number, const Batch& from, const Batch& to) = 0;
  // Makes `consumer` wait until what was carried has arrived; marks the end of its use, on the thread of the last
  // holder.
  virtual void take(size_t number, StreamHandle consumer) = 0;
  virtual void give_back(size_t number, StreamHandle consumer) = 0;
};

struct CrossingOptions {
  size_t places = 4;
  double start_delay_s = 0;
  int model_device = -1;
};

struct GpuLinkOptions {
  int data_device = 0, model_device = 0;
  bool staged = false;     // through pinned host memory
  bool overlap = true;     // false: a batch has arrived before the next one leaves
  size_t place_bytes = 0;  // of the largest batch
};
std::unique_ptr<CrossingLink> make_gpu_link(const CrossingOptions& options, const GpuLinkOptions& link);

class Crossing : public BatchSource {
 public:
  Crossing(std::unique_ptr<BatchSource> loader, std::unique_ptr<CrossingLink> link, const CrossingOptions& options);
  ~Crossing() override;  // cancels batches in flight and joins its thread
  Crossing(const Crossing&) = delete;
  Crossing& operator=(const Crossing&) = delete;

  // The first one also waits until the delay has passed since the start and every place is filled.
  BatchLease next(StreamHandle consumer = nullptr) override;
  bool wait(std::chrono::milliseconds most) override;
  // The loader's, but for what the consumer waited.
  LoaderStats stats() const override;
  void stop() override;

 private:
  struct State;
  std::shared_ptr<State> state_;  // leases share it
};

}  // namespace myxtts
