#include "base/error.h"
#include "features/mel.h"
#include "loader/backend.h"
#include "loader/batch.h"
#include "loader/batch_memory.h"
#include "loader/replace.h"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace myxtts {
namespace {

// Ready batches in host memory; a worker takes a row all the way to its mel.
class CpuBackend : public LoaderBackend {
 public:
  CpuBackend(const Corpus& corpus, const BatchPlan& plan, const LoaderOptions& options)
      : corpus_(corpus), plan_(plan), memory_(options.ring_batches) {
    for (size_t i = 0; i < options.workers; ++i) idle_.push_back(std::make_unique<MelCpu>(corpus.mel));
    const size_t bytes = largest_batch_bytes(plan, corpus.mel.n_mels, options.world_size);
    for (HostBuffer& memory : memory_) {
      memory = HostBuffer(bytes, options.pinned);
      std::memset(memory.data(), 0, bytes);  // taken now, not as larger and larger batches come
    }
  }

  std::vector<size_t> begin(LoaderSlot& slot) override {
    lay_out(slot.batch, memory_[slot.number].data());
    std::vector<size_t> rows;
    for (size_t row = 0; row < slot.planned.clips.size(); ++row) rows.push_back(row);
    return rows;
  }

  uint64_t make_row(LoaderSlot& slot, size_t row) override {
    LoadedBatch& batch = slot.batch;
    int32_t* const tokens = batch.tokens + static_cast<int64_t>(row) * batch.text_length;
    const std::span mel(batch.mel + static_cast<int64_t>(row) * batch.mel_frames * batch.n_mels,
                        static_cast<size_t>(batch.mel_frames * batch.n_mels));
    size_t filled = 0;
    uint64_t bytes = 0;
    batch.text_lengths[row] = batch.mel_lengths[row] = 0;
    std::fill_n(tokens, batch.text_length, 0);
    if (slot.planned.clips[row] != no_clip) {
      const auto load = [&](const CorpusClip& clip) {
        const std::vector<float> samples = read_used_part(corpus_, clip);
        const std::vector<uint16_t> numbers = tokens_of(corpus_, clip);
        filled = clip.length.mel_frames * static_cast<size_t>(batch.n_mels);
        Borrowed(*this)->compute(samples, mel.first(filled));
        std::copy(numbers.begin(), numbers.end(), tokens);
        batch.text_lengths[row] = static_cast<int32_t>(numbers.size());
        batch.mel_lengths[row] = static_cast<int32_t>(clip.length.mel_frames);
        slot.seconds[row] = clip.seconds();
        bytes = clip.place.bytes;
      };
      batch.clips[row] = load_or_replace(corpus_, plan_, batch.shape, slot.planned.clips[row], slot.bad[row], load);
    }
    std::fill(mel.begin() + static_cast<std::ptrdiff_t>(filled), mel.end(), 0.0F);
    return bytes;
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
    MelCpu* operator->() const { return mel_.get(); }

   private:
    CpuBackend& owner_;
    std::unique_ptr<MelCpu> mel_;
  };

  const Corpus& corpus_;
  const BatchPlan& plan_;
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
