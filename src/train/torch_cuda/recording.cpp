#include "train/recording.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace myxtts {
namespace {

class TorchStream : public OwnStream {
 public:
  explicit TorchStream(int device)
      : stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, static_cast<c10::DeviceIndex>(device))),
        guard_(stream_) {}
  StreamHandle handle() const override { return stream_.stream(); }

 private:
  c10::cuda::CUDAStream stream_;
  c10::cuda::CUDAStreamGuard guard_;
};

class Graph : public Recording {
 public:
  Graph(at::cuda::MempoolId_t pool, const std::function<void()>& work) {
    // Only this thread is watched: the loader's threads go on meanwhile.
    graph_.capture_begin(pool, cudaStreamCaptureModeThreadLocal);
    try {
      work();
    } catch (...) {
      graph_.capture_end();
      throw;
    }
    graph_.capture_end();
  }
  void replay() override { graph_.replay(); }

 private:
  at::cuda::CUDAGraph graph_;
};

class GraphRecorder : public Recorder {
 public:
  explicit GraphRecorder(int device) : device_(static_cast<c10::DeviceIndex>(device)) {}

  std::unique_ptr<Recording> record(const std::function<void()>& work) override {
    const c10::cuda::CUDAGuard guard(device_);
    // What was kept from unrecorded work is of no use to a recording, and may be missing.
    const DeviceMemory memory = device_memory(device_);
    if (memory.free_bytes < memory.total_bytes / 2) c10::cuda::CUDACachingAllocator::emptyCache();
    return std::make_unique<Graph>(pool_, work);
  }

 private:
  c10::DeviceIndex device_;
  at::cuda::MempoolId_t pool_ = at::cuda::graph_pool_handle();
};

}  // namespace

std::unique_ptr<OwnStream> use_own_stream(int device) { return std::make_unique<TorchStream>(device); }
std::unique_ptr<Recorder> make_recorder(int device) { return std::make_unique<GraphRecorder>(device); }

}  // namespace myxtts
