#include "loader/upload.h"

#include "base/error.h"
#include "loader/cuda/handles.h"

#include <algorithm>
#include <array>
#include <atomic>

namespace myxtts {
namespace {

constexpr size_t max_leases = 4;  // batches on the GPU at a time

class Upload : public BatchSource {
 public:
  Upload(std::unique_ptr<BatchSource> loader, int device, size_t batch_bytes)
      : state_(std::make_shared<State>(std::move(loader), device)) {
    for (Place& place : state_->places) place.memory = DeviceBuffer(device, batch_bytes);
  }

  BatchLease next(StreamHandle consumer) override {
    State& state = *state_;
    CUDA_CHECK(cudaSetDevice(state.device));
    state.copied.wait();
    state.copied_from.reset();  // the loader may now write there again
    check_leases();
    Place* const free = std::ranges::find_if(state.places, [](const Place& place) { return !place.leased; });
    state.copied_from = state.loader->next(nullptr);
    const Batch& from = *state.copied_from;
    free->batch = from;
    place_arrays(free->batch, static_cast<std::byte*>(free->memory.data()), state.device);
    free->released.hold_up(consumer);
    for (size_t i = 0; i < from.arrays.size(); ++i) {
      CUDA_CHECK(cudaMemcpyAsync(free->batch.arrays[i].data, from.arrays[i].data, from.arrays[i].bytes(),
                                 cudaMemcpyHostToDevice, consumer));
    }
    state.copied.record(consumer);
    free->leased = true;
    return {&free->batch, [shared = state_, free, consumer](const Batch*) {
              cudaSetDevice(shared->device);
              cudaEventRecord(free->released.get(), consumer);  // an error shows at the next call
              free->leased = false;
            }};
  }
  bool wait(std::chrono::milliseconds most) override {
    check_leases();
    return state_->loader->wait(most);
  }
  LoaderStats stats() const override { return state_->loader->stats(); }
  void stop() override { state_->loader->stop(); }

 private:
  struct Place {
    DeviceBuffer memory;
    Batch batch;
    Event released;
    std::atomic<bool> leased = false;
  };
  struct State {
    State(std::unique_ptr<BatchSource> source, int number) : loader(std::move(source)), device(number) {}
    ~State() { cudaEventSynchronize(copied.get()); }
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    std::unique_ptr<BatchSource> loader;
    int device;
    BatchLease copied_from;
    Event copied;
    std::array<Place, max_leases> places;
  };

  void check_leases() const {
    if (std::ranges::all_of(state_->places, [](const Place& place) { return place.leased.load(); })) {
      fail("loader", "all {} batches on the GPU are held", max_leases, way_out("let go of one"));
    }
  }

  std::shared_ptr<State> state_;  // leases share it
};

}  // namespace

std::unique_ptr<BatchSource> upload_when_taken(std::unique_ptr<BatchSource> loader, int device, size_t batch_bytes) {
  CUDA_CHECK(cudaSetDevice(device));  // its events belong there
  return std::make_unique<Upload>(std::move(loader), device, batch_bytes);
}

}  // namespace myxtts
