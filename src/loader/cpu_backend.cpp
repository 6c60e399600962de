#include "device/device.h"
#include "loader/backend.h"
#include "loader/make_batch.h"

#include <cstring>
#include <mutex>
#include <numeric>

namespace myxtts {
namespace {

// Ready batches in host memory; a worker takes a row all the way to its mel.
class CpuBackend : public LoaderBackend {
 public:
  CpuBackend(const Corpus& corpus, const BatchPlan& plan, const LoaderOptions& options)
      : builder_(corpus, plan, options.arrays, options.world_size, options.rank), memory_(options.ring_batches) {
    for (size_t i = 0; i < options.workers; ++i) idle_.push_back(std::make_unique<MelCpu>(corpus.mel));
    for (HostBuffer& memory : memory_) {
      memory = HostBuffer(builder_.max_bytes(), options.pinned);
      std::memset(memory.data(), 0, builder_.max_bytes());  // taken now, not as larger and larger batches come
    }
  }

  std::vector<size_t> begin(LoaderSlot& slot) override {
    std::byte* const host = memory_[slot.number].data();
    builder_.place(slot.batch, host, host + builder_.host_bytes(slot.batch), -1);
    std::vector<size_t> rows(slot.planned.clips.size());
    std::iota(rows.begin(), rows.end(), size_t{0});
    return rows;
  }

  uint64_t make_row(LoaderSlot& slot, size_t row) override {
    const Borrowed mel(*this);
    return make_cpu_row(builder_, *mel, slot.batch, memory_[slot.number].data(), row, slot.planned.clips[row],
                        slot.bad[row]);
  }

  void finish(LoaderSlot&) override {}
  void take(LoaderSlot&, StreamHandle) override {}
  void give_back(LoaderSlot&, StreamHandle) override {}
  void stop() override {}

 private:
  // One worker's transform for a while.
  class Borrowed {
   public:
    explicit Borrowed(CpuBackend& owner) : owner_(owner) {
      const std::lock_guard lock(owner.mutex_);
      mel_ = std::move(owner.idle_.back());
      owner.idle_.pop_back();
    }
    ~Borrowed() {
      const std::lock_guard lock(owner_.mutex_);
      owner_.idle_.push_back(std::move(mel_));
    }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    MelCpu& operator*() const { return *mel_; }

   private:
    CpuBackend& owner_;
    std::unique_ptr<MelCpu> mel_;
  };

  const RowBuilder builder_;
  std::vector<HostBuffer> memory_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<MelCpu>> idle_;
};

}  // namespace

std::unique_ptr<LoaderBackend> make_cpu_backend(const Corpus& corpus, const BatchPlan& plan,
                                                const LoaderOptions& options) {
  return std::make_unique<CpuBackend>(corpus, plan, options);
}

}  // namespace myxtts
