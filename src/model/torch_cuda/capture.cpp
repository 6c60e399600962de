#include "model/capture.h"

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
  void synchronize() const override { stream_.synchronize(); }

 private:
  c10::cuda::CUDAStream stream_;
  c10::cuda::CUDAStreamGuard guard_;
};

class TorchGraph : public CapturedGraph {
 public:
  TorchGraph(at::cuda::MempoolId_t pool, const std::function<void()>& work) {
    // Thread-local: the loader's threads keep calling CUDA meanwhile.
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

class TorchCapturer : public GraphCapturer {
 public:
  explicit TorchCapturer(int device) : device_(static_cast<c10::DeviceIndex>(device)) {}

  std::unique_ptr<CapturedGraph> capture(const std::function<void()>& work) override {
    const c10::cuda::CUDAGuard guard(device_);
    // Memory cached from uncaptured work is of no use to a graph's pool, and may be missing there.
    const DeviceMemory memory = device_memory(device_);
    if (memory.free_bytes < memory.total_bytes / 2) c10::cuda::CUDACachingAllocator::emptyCache();
    return std::make_unique<TorchGraph>(pool_, work);
  }

 private:
  c10::DeviceIndex device_;
  at::cuda::MempoolId_t pool_ = at::cuda::graph_pool_handle();
};

}  // namespace

std::unique_ptr<OwnStream> use_own_stream(int device) { return std::make_unique<TorchStream>(device); }
std::unique_ptr<GraphCapturer> make_graph_capturer(int device) { return std::make_unique<TorchCapturer>(device); }

}  // namespace myxtts
