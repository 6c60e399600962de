// CUDA streams and events that end with their scope.
#pragma once

#include "device/cuda/check.h"

namespace myxtts {

class Stream {
 public:
  // Lower priority than the consumer's: what is ready ahead of time can wait, a step cannot.
  Stream() {
    int least = 0, greatest = 0;
    CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CUDA_CHECK(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, least));
  }
  ~Stream() {
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// A point in a stream that another stream, or the host, can wait for. Waiting for one that was never recorded returns
// at once.
class Event {
 public:
  Event() { CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming | cudaEventBlockingSync)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream) { CUDA_CHECK(cudaEventRecord(event_, stream)); }
  void hold_up(cudaStream_t stream) const { CUDA_CHECK(cudaStreamWaitEvent(stream, event_)); }
  cudaEvent_t get() const { return event_; }
  void wait() const { CUDA_CHECK(cudaEventSynchronize(event_)); }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace myxtts
