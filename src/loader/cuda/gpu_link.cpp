#include "device/device.h"
#include "loader/crossing.h"
#include "loader/cuda/handles.h"

#include <vector>

namespace myxtts {
namespace {

// An event belongs to a device and is recorded in that device's streams alone; any stream may wait for it. So what
// marks the consumer's use is the model device's, and what marks an arrival is that of the stream that copies last.
class GpuLink : public CrossingLink {
 public:
  GpuLink(const CrossingOptions& options, const GpuLinkOptions& link) : link_(link) {
    reach(link.data_device, link.model_device);
    reach(link.model_device, link.data_device);
    CUDA_CHECK(cudaSetDevice(link.data_device));
    leaving_ = std::make_unique<Stream>();
    CUDA_CHECK(cudaSetDevice(link.model_device));
    if (link.staged) arriving_ = std::make_unique<Stream>();
    for (size_t i = 0; i < options.places; ++i) {
      Place& place = places_.emplace_back();
      place.memory = DeviceBuffer(link.model_device, link.place_bytes);
      place.released = std::make_unique<Event>();
      if (link.staged) place.host = HostBuffer(link.place_bytes, true);
      CUDA_CHECK(cudaSetDevice(link.data_device));
      if (link.staged) place.left = std::make_unique<Event>();
      if (link.staged) CUDA_CHECK(cudaSetDevice(link.model_device));
      place.arrived = std::make_unique<Event>();
    }
  }

  StreamHandle stream() override { return leaving_->get(); }
  std::byte* place(size_t number) override { return static_cast<std::byte*>(places_[number].memory.data()); }

  void carry(size_t number, const Batch& from, const Batch& to) override {
    Place& place = places_[number];
    CUDA_CHECK(cudaSetDevice(link_.data_device));
    if (link_.staged) {
      carry_staged(place, from, to);
    } else {
      place.released->hold_up(leaving_->get());
      for (size_t i = 0; i < from.arrays.size(); ++i) {
        CUDA_CHECK(cudaMemcpyPeerAsync(to.arrays[i].data, link_.model_device, from.arrays[i].data, link_.data_device,
                                       from.arrays[i].bytes(), leaving_->get()));
      }
      place.arrived->record(leaving_->get());
    }
    if (!link_.overlap) place.arrived->wait();
  }

  void take(size_t number, StreamHandle consumer) override {
    CUDA_CHECK(cudaSetDevice(link_.model_device));
    places_[number].arrived->hold_up(consumer);
  }
  void give_back(size_t number, StreamHandle consumer) override {
    CUDA_CHECK(cudaSetDevice(link_.model_device));
    places_[number].released->record(consumer);
  }

 private:
  struct Place {
    DeviceBuffer memory;
    HostBuffer host;
    std::unique_ptr<Event> left, arrived, released;
  };

  // Without it the driver copies through host memory by itself, and slowly.
  static void reach(int device, int other) {
    if (device == other || !can_access_peer(device, other)) return;
    CUDA_CHECK(cudaSetDevice(device));
    const cudaError_t status = cudaDeviceEnablePeerAccess(other, 0);
    if (status == cudaErrorPeerAccessAlreadyEnabled) {
      cudaGetLastError();
    } else {
      CUDA_CHECK(status);
    }
  }

  void carry_staged(Place& place, const Batch& from, const Batch& to) {
    Batch between = to;
    place_arrays(between, place.host.data(), -1);
    place.arrived->hold_up(leaving_->get());  // what lay in the host memory before
    for (size_t i = 0; i < from.arrays.size(); ++i) {
      CUDA_CHECK(cudaMemcpyAsync(between.arrays[i].data, from.arrays[i].data, from.arrays[i].bytes(),
                                 cudaMemcpyDeviceToHost, leaving_->get()));
    }
    place.left->record(leaving_->get());
    CUDA_CHECK(cudaSetDevice(link_.model_device));
    place.left->hold_up(arriving_->get());
    place.released->hold_up(arriving_->get());
    for (size_t i = 0; i < from.arrays.size(); ++i) {
      CUDA_CHECK(cudaMemcpyAsync(to.arrays[i].data, between.arrays[i].data, from.arrays[i].bytes(),
                                 cudaMemcpyHostToDevice, arriving_->get()));
    }
    place.arrived->record(arriving_->get());
  }

  const GpuLinkOptions link_;
  std::vector<Place> places_;
  std::unique_ptr<Stream> leaving_, arriving_;  // last: they are waited for before the memory goes
};

}  // namespace

std::unique_ptr<CrossingLink> make_gpu_link(const CrossingOptions& options, const GpuLinkOptions& link) {
  return std::make_unique<GpuLink>(options, link);
}

}  // namespace myxtts
