#include "loader/upload.h"

#include "loader/batch_memory.h"
#include "loader/cuda/handles.h"

#include <utility>

namespace myxtts {
namespace {

class Upload : public BatchSource {
 public:
  Upload(std::unique_ptr<BatchSource> loader, int device, size_t batch_bytes)
      : loader_(std::move(loader)), device_(device), memory_(device, batch_bytes) {}  // sets the device

  const LoadedBatch& next(StreamHandle consumer) override {
    CUDA_CHECK(cudaSetDevice(device_));
    copied_.wait();  // the loader may now write to where it was copied from
    const LoadedBatch& from = loader_->next(nullptr);
    batch_ = from;
    lay_out(batch_, static_cast<std::byte*>(memory_.data()));
    const auto sources = arrays_of(from), targets = arrays_of(batch_);
    // In the consumer's stream the batch before is done with.
    for (size_t i = 0; i < sources.size(); ++i) {
      CUDA_CHECK(cudaMemcpyAsync(targets[i].data, sources[i].data, sources[i].bytes, cudaMemcpyHostToDevice, consumer));
    }
    copied_.record(consumer);
    return batch_;
  }
  LoaderStats stats() const override { return loader_->stats(); }
  void stop() override { loader_->stop(); }

  ~Upload() override { cudaEventSynchronize(copied_.get()); }
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

 private:
  const std::unique_ptr<BatchSource> loader_;
  const int device_;
  DeviceBuffer memory_;
  Event copied_;
  LoadedBatch batch_;
};

}  // namespace

std::unique_ptr<BatchSource> upload_when_taken(std::unique_ptr<BatchSource> loader, int device, size_t batch_bytes) {
  return std::make_unique<Upload>(std::move(loader), device, batch_bytes);
}

}  // namespace myxtts
