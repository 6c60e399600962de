#include "audio/wav.h"
#include "base/bounded_queue.h"
#include "base/error.h"
#include "base/files.h"
#include "features/mel_gpu.h"
#include "loader/backend.h"
#include "loader/cuda/handles.h"
#include "loader/cuda/host_cache.h"
#include "loader/cuda/registered_files.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace myxtts {
namespace {

constexpr size_t staging_areas = 4;
constexpr size_t copy_streams = 2;  // in turn, so that PCIe does not idle between two batches
constexpr uint64_t nowhere = std::numeric_limits<uint64_t>::max();

uint64_t aligned(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

// A clip that is kept, is on its way there, or could not be read.
struct CachedClip {
  enum class State { coming, here, lost };
  std::atomic<State> state = State::coming;
  GpuClip where;                            // on the GPU; of one in host memory all but the place
  std::byte* host = nullptr;                // its place in host memory; null: it is kept on the GPU
  std::span<const std::byte> host_samples;  // what is uploaded of it
  RowValues values;
};

struct Row {
  uint64_t offset = nowhere;  // of its bytes among the batch's, in the slab and on the GPU
  uint64_t room = 0;
  CachedClip* cached = nullptr;  // where it is kept, or is to be
  bool from_cache = false;
  bool in_slab = false;                    // read into the slab where it was planned
  bool set_apart = false;                  // too large for that, as a substitute may be: read into a place of its own
  std::span<const std::byte> mapped = {};  // samples that the GPU copies from where they lie, not from the slab
  GpuClip clip;
};

// Pinned memory that a batch is read into: its head, then its samples. The head is what goes to the GPU beside them:
// the arrays filled on the host, and a table of where the samples lie.
struct Slab {
  explicit Slab(size_t bytes) : memory(bytes, true) {}
  HostBuffer memory;
  Event copied;
};

// The stretch of another clip that shows how a row's speaker sounds.
struct ReferenceRow {
  GpuClip clip;                        // nothing: there is none
  const CachedClip* cached = nullptr;  // it lies on the GPU
  bool in_slab = false;                // it was decoded into the slab
  int32_t frames = 0;
};

struct SlotState {
  DeviceBuffer memory;  // head, mel and references
  uint64_t table = 0;   // where the table begins in the head
  Slab* slab = nullptr;
  uint64_t staging = 0;  // its staging area in the arena
  uint64_t base = 0;     // where its samples go: there, or to where they stay
  uint64_t planned_bytes = 0;
  size_t shape = 0;
  std::vector<Row> rows;
  std::vector<ReferenceRow> references;
  Event ready, consumed;
};

ByteSource memory_source(const std::string& name, std::span<const std::byte> bytes) {
  return {name, bytes.size(), [bytes](uint64_t offset, std::span<std::byte> into) -> size_t {
            if (offset >= bytes.size()) return 0;
            const size_t count = std::min<size_t>(into.size(), bytes.size() - offset);
            std::memcpy(into.data(), bytes.data() + offset, count);
            return count;
          }};
}

// Several copies by one call if the toolkit and the driver support it.
void copy_all(const std::vector<void*>& targets, const std::vector<const void*>& sources,
              const std::vector<size_t>& sizes, cudaStream_t stream) {
#if CUDART_VERSION >= 13000
  if (sizes.size() > 2) {
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    size_t first = 0;
    const cudaError_t status = cudaMemcpyBatchAsync(targets.data(), sources.data(), sizes.data(), sizes.size(),
                                                    &attributes, &first, 1, stream);
    if (status == cudaSuccess) return;
    cudaGetLastError();
  }
#endif
  for (size_t i = 0; i < sizes.size(); ++i) {
    CUDA_CHECK(cudaMemcpyAsync(targets[i], sources[i], sizes[i], cudaMemcpyHostToDevice, stream));
  }
}

class GpuBackend : public LoaderBackend {
 public:
  GpuBackend(const Corpus& corpus, const BatchPlan& plan, const LoaderOptions& options)
      : corpus_(corpus),
        builder_(corpus, plan, options.arrays, options.world_size, options.rank),
        device_(options.device),
        overlap_(options.overlap),
        files_(options.device),
        free_slabs_(slab_count(options)),
        slots_(options.ring_batches),
        cache_end_(options.gpu_cache_bytes),
        // Shards are registered: their clips lie in locked memory already.
        host_cache_(corpus.index.size() > 0 && corpus.index.clip(0).place.part ? 0 : options.host_cache_bytes),
        copies_(copy_streams) {
    CUDA_CHECK(cudaSetDevice(device_));
    MelGpuLimits limits;
    for (const Shape& shape : plan.shapes()) {
      const int64_t rows = shape.batch_size / static_cast<int64_t>(options.world_size);
      uint64_t row_bytes = 0;
      for (const uint32_t clip : shape.clips) row_bytes = std::max(row_bytes, corpus.index.loaded_bytes(clip));
      row_bytes_.push_back(aligned(row_bytes));
      half_batch_bytes_ = std::max(half_batch_bytes_, static_cast<uint64_t>(rows) * row_bytes_.back());
      limits.clips = std::max(limits.clips, static_cast<int>(rows));
      limits.frames = std::max(limits.frames, shape.mel_frames);
      limits.samples = std::max(limits.samples, (shape.mel_frames + 8) * corpus.mel.hop_length + corpus.mel.n_fft);
    }
    for (const auto& [rate, count] : corpus.index.summary().sample_rates)
      limits.sample_rates.push_back(std::stoi(rate));
    batch_bytes_ = 2 * half_batch_bytes_;  // clips as planned, and a place for each row's substitute
    const auto rows = static_cast<uint64_t>(limits.clips);
    if (builder_.has_references()) {
      limits.frames = std::max(limits.frames, reference_frames);
      limits.samples = std::max(limits.samples, (reference_frames + 8) * corpus.mel.hop_length + corpus.mel.n_fft);
      for (const int rate : limits.sample_rates) {
        reference_bytes_ = std::max(reference_bytes_, aligned(builder_.reference_samples(rate) * sizeof(float)));
      }
    }
    mel_ = std::make_unique<MelGpu>(corpus.mel, device_, limits);
    const auto references = static_cast<uint64_t>(reference_rows(limits.clips));
    head_bytes_ = builder_.max_host_bytes() + aligned((rows + references) * sizeof(GpuClip));
    area_bytes_ = batch_bytes_ + references * reference_bytes_;
    for (size_t i = 0; i < slab_count(options); ++i) {
      slabs_.push_back(std::make_unique<Slab>(head_bytes_ + area_bytes_));
      free_slabs_.push(slabs_.back().get());
    }
    arena_ = DeviceBuffer(device_, staging_areas * area_bytes_ + cache_end_);
    for (SlotState& slot : slots_) slot.memory = DeviceBuffer(device_, head_bytes_ + builder_.max_computed_bytes());
    if (cache_end_ + options.host_cache_bytes > 0) cached_.resize(corpus.index.size());
  }

  ~GpuBackend() override { cudaSetDevice(device_); }

  std::vector<size_t> begin(LoaderSlot& slot) override {
    CUDA_CHECK(cudaSetDevice(device_));
    SlotState& state = slots_[slot.number];
    const std::optional<Slab*> slab = free_slabs_.pop();
    if (!slab) fail_as(ErrorCode::stopped, "loader", "it was stopped");
    state.slab = *slab;
    state.slab->copied.wait();
    auto* const memory = static_cast<std::byte*>(state.memory.data());
    builder_.place(slot.batch, memory, memory + head_bytes_, device_);
    state.table = builder_.host_bytes(slot.batch);
    std::memset(state.slab->memory.data(), 0, state.table);
    const size_t count = slot.planned.clips.size();
    state.rows.assign(count, Row());
    state.references.assign(builder_.has_references() ? static_cast<size_t>(slot.batch["reference"].dims[0]) : 0, {});
    state.shape = slot.batch.shape;
    std::vector<size_t> needed, in_host_memory;
    for (size_t row = 0; row < count; ++row) {
      const uint32_t number = slot.planned.clips[row];
      if (number == no_clip) continue;
      Row& one = state.rows[row];
      one.room = corpus_.index.loaded_bytes(number);
      if (!cached_.empty() && cached_[number] != nullptr && cached_[number]->state != CachedClip::State::lost) {
        one.cached = cached_[number].get(), one.from_cache = true;
        if (one.cached->host != nullptr) in_host_memory.push_back(row);
      } else {
        needed.push_back(row);
      }
    }
    state.staging = state.base = slot.sequence % staging_areas * area_bytes_;
    const bool on_gpu = in_host_memory.empty() && keep_on_gpu(slot, state, needed);
    if (!on_gpu) keep_in_host_memory(slot, state, needed, in_host_memory);
    // What is read into the slab first, so that it is copied in one piece.
    uint64_t bytes = 0;
    const auto place = [&](size_t row) {
      state.rows[row].offset = bytes;
      bytes += aligned(state.rows[row].room);
    };
    for (const size_t row : needed) {
      if (!keeps_in_host_memory(state.rows[row])) place(row);
    }
    state.planned_bytes = bytes;
    for (const size_t row : in_host_memory) place(row);
    if (bytes > half_batch_bytes_)
      fail("loader", "a batch has {} bytes where {} were expected", bytes, half_batch_bytes_);
    if (builder_.has_references()) begin_references(slot, state, needed);
    return needed;
  }

  uint64_t make_row(LoaderSlot& slot, size_t row) override {
    SlotState& state = slots_[slot.number];
    Row& one = state.rows[row];
    const auto load_reference = [&](const CorpusClip& clip) { decode_reference(clip, slot, row); };
    if (one.from_cache) {  // only its reference is to be read
      state.references.at(row).frames =
          builder_.take_reference(slot.batch.epoch, slot.planned.clips[row], load_reference);
      return 0;
    }
    uint64_t bytes = 0;
    RowValues values = builder_.build(
        slot.batch, state.slab->memory.data(), row, slot.planned.clips[row], slot.bad[row],
        [&](const CorpusClip& clip) { bytes = load_samples(clip, slot, row); }, load_reference);
    if (row < state.references.size()) state.references[row].frames = values.reference_frames;
    if (slot.batch.clips[row] == no_clip) {
      one.clip = {}, one.in_slab = one.set_apart = false, one.mapped = {};
    } else if (one.cached != nullptr && !one.from_cache) {
      one.cached->values = std::move(values), one.cached->where = one.clip;
      if (one.cached->host != nullptr) one.cached->host_samples = one.mapped;
    }
    // A substitute is not kept: it is looked for again each time.
    if (one.cached != nullptr && !one.from_cache) {
      one.cached->state = slot.bad[row].empty() ? CachedClip::State::here : CachedClip::State::lost;
    }
    return bytes;
  }

  void finish(LoaderSlot& slot) override {
    CUDA_CHECK(cudaSetDevice(device_));
    SlotState& state = slots_[slot.number];
    Batch& batch = slot.batch;
    std::byte* const host = state.slab->memory.data();
    for (size_t row = 0; row < state.rows.size(); ++row) {
      Row& one = state.rows[row];
      if (!one.from_cache) continue;
      if (one.cached->state == CachedClip::State::here) {
        RowValues values = one.cached->values;
        values.reference_frames = cached_reference(slot, row);
        builder_.place_crop(batch, row, values);  // another one than when the clip was read
        builder_.fill(batch, host, row, values);
        one.clip = one.cached->where;
        if (one.cached->host != nullptr) {
          one.mapped = one.cached->host_samples;
          one.clip.offset_bytes = place_on_gpu(state, one.offset);
        }
      } else {  // it turned out to be broken after this batch had counted on it
        one.from_cache = false, one.cached = nullptr;
        make_row(slot, row);
      }
    }
    const size_t rows = state.rows.size();
    auto* const table = reinterpret_cast<GpuClip*>(host + state.table);
    const size_t references = state.references.size();
    for (size_t row = 0; row < rows; ++row)
      table[row] = builder_.takes_crops() ? crop_of(slot, row) : state.rows[row].clip;
    for (size_t row = 0; row < references; ++row) table[rows + row] = state.references[row].clip;

    auto* const arena = static_cast<std::byte*>(arena_.data());
    auto* const memory = static_cast<std::byte*>(state.memory.data());
    const cudaStream_t copies = copies_[slot.sequence % copy_streams].get();
    state.consumed.hold_up(copies);
    copy_samples(slot.sequence, state, arena, copies);
    const uint64_t head_bytes = state.table + (rows + references) * sizeof(GpuClip);
    CUDA_CHECK(cudaMemcpyAsync(memory, host, head_bytes, cudaMemcpyHostToDevice, copies));
    state.slab->copied.record(copies);
    state.slab->copied.hold_up(features_.get());
    Slab* const used = std::exchange(state.slab, nullptr);

    const auto* const clips = reinterpret_cast<const GpuClip*>(memory + state.table);
    const auto compute = [&](const Array& out, size_t first) {
      const auto count = static_cast<size_t>(out.dims[0]);
      mel_->run(arena, clips + first, static_cast<int>(count), are_plain({table + first, count}), out.data, out.dims[1],
                MelType::float32, 0.0F, features_.get());
    };
    compute(batch["mel"], 0);
    if (builder_.takes_crops()) {
      mel_->samples(arena, clips, static_cast<int>(rows), reinterpret_cast<float*>(batch["samples"].data), crop_samples,
                    features_.get());
    }
    if (references > 0) compute(batch["reference"], rows);
    free_slabs_.push(used);
    state.ready.record(features_.get());
    if (!overlap_) state.ready.wait();
  }

  void take(LoaderSlot& slot, StreamHandle consumer) override {
    CUDA_CHECK(cudaSetDevice(device_));
    slots_[slot.number].ready.hold_up(consumer);
  }
  void give_back(LoaderSlot& slot, StreamHandle consumer) override {
    CUDA_CHECK(cudaSetDevice(device_));
    slots_[slot.number].consumed.record(consumer);
  }
  void stop() override { free_slabs_.close(); }

 private:
  static size_t slab_count(const LoaderOptions& options) {
    return std::min(options.ring_batches, std::max(options.reading_batches, options.max_reading_batches));
  }

  static bool keeps_in_host_memory(const Row& row) { return row.cached != nullptr && row.cached->host != nullptr; }

  CachedClip& new_cached(uint32_t number) {
    cached_[number] = std::make_unique<CachedClip>();
    return *cached_[number];
  }

  // The batch's clips go straight to where they will stay, if there is room for all of them.
  bool keep_on_gpu(LoaderSlot& slot, SlotState& state, const std::vector<size_t>& needed) {
    uint64_t bytes = 0;
    for (const size_t row : needed) bytes += aligned(state.rows[row].room);
    if (bytes == 0 || cache_used_ + bytes > cache_end_) return false;
    for (const size_t row : needed) {
      if (cached_[slot.planned.clips[row]] != nullptr) return false;  // one that was lost is never kept
    }
    state.base = staging_areas * area_bytes_ + cache_used_;
    cache_used_ += bytes;
    for (const size_t row : needed) {
      const uint32_t number = slot.planned.clips[row];
      if (cached_[number] == nullptr) state.rows[row].cached = &new_cached(number);  // the first of those that repeat
    }
    return true;
  }

  // Those for which there is room are read to where they will stay, and copied to the GPU from there.
  void keep_in_host_memory(LoaderSlot& slot, SlotState& state, const std::vector<size_t>& needed,
                           std::vector<size_t>& in_host_memory) {
    for (const size_t row : needed) {
      const uint32_t number = slot.planned.clips[row];
      if (cached_.empty() || cached_[number] != nullptr) continue;
      std::byte* const memory = host_cache_.add(aligned(state.rows[row].room));
      if (memory == nullptr) continue;
      CachedClip& cached = new_cached(number);
      cached.host = memory;
      state.rows[row].cached = &cached;
      in_host_memory.push_back(row);
    }
  }

  bool are_plain(std::span<const GpuClip> clips) const {
    return std::ranges::all_of(clips, [this](const GpuClip& clip) {
      return clip.samples == 0 || (clip.format == SampleFormat::pcm_16 && clip.channels == 1 &&
                                   clip.sample_rate == corpus_.mel.sample_rate && clip.offset_bytes % 2 == 0);
    });
  }

  // Rows that are kept on the GPU need a worker only for a reference that is not.
  void begin_references(const LoaderSlot& slot, SlotState& state, std::vector<size_t>& needed) const {
    for (size_t row = 0; row < state.references.size(); ++row) {
      if (!state.rows[row].from_cache || !builder_.has_reference(slot.batch, row)) continue;
      const uint32_t number = builder_.reference_number(slot.planned.epoch, slot.planned.clips[row]);
      const CachedClip* const cached = cached_[number].get();
      const bool here = cached != nullptr && cached->host == nullptr && cached->state == CachedClip::State::here;
      if (here) {
        state.references[row].cached = cached;
      } else {
        needed.push_back(row);
      }
    }
  }

  // The part of the row's clip that is used, wherever that lies.
  GpuClip crop_of(const LoaderSlot& slot, size_t row) {
    GpuClip part = slots_[slot.number].rows[row].clip;
    if (part.samples == 0) return part;
    const CorpusClip clip = corpus_.clip(slot.batch.clips[row]), crop = builder_.crop(slot.batch, row, clip);
    part.offset_bytes += (crop.first_sample - clip.first_sample) * bytes_per_frame(part);
    part.samples = static_cast<uint32_t>(crop.samples);
    return part;
  }

  // The frames of a kept row's reference, which is looked up where it is kept too.
  int32_t cached_reference(const LoaderSlot& slot, size_t row) {
    if (row >= slots_[slot.number].references.size()) return 0;
    ReferenceRow& reference = slots_[slot.number].references[row];
    if (reference.cached == nullptr) return reference.frames;
    const RowBuilder::Reference part = builder_.reference_of(slot.batch.epoch, slot.planned.clips[row]);
    const uint64_t skipped = part.clip.first_sample - corpus_.index.clip(part.number).first_sample;
    reference.clip = reference.cached->where;
    reference.clip.offset_bytes += skipped * bytes_per_frame(reference.clip);
    reference.clip.samples = static_cast<uint32_t>(part.clip.samples);
    return static_cast<int32_t>(part.clip.length.mel_frames);
  }

  static uint64_t bytes_per_frame(const GpuClip& clip) {
    return static_cast<uint64_t>(clip.channels) * static_cast<uint64_t>(bytes_per_sample(clip.format));
  }

  void decode_reference(const CorpusClip& clip, const LoaderSlot& slot, size_t row) {
    SlotState& state = slots_[slot.number];
    const Clip audio = read_clip(clip.place, clip.first_sample, clip.samples);
    if (audio.samples.size() != clip.samples || audio.sample_rate != clip.sample_rate) changed(clip);
    const uint64_t bytes = audio.samples.size() * sizeof(float);
    if (bytes > reference_bytes_) changed(clip);  // of a rate that the index's summary lacks
    const uint64_t offset = batch_bytes_ + row * reference_bytes_;
    std::memcpy(state.slab->memory.data() + head_bytes_ + offset, audio.samples.data(), bytes);
    ReferenceRow& reference = state.references[row];
    reference.clip =
        gpu_clip(clip, {SampleFormat::float_32, 1, clip.sample_rate, 0, clip.samples}, state.staging + offset);
    reference.in_slab = true;
  }

  // Where in the slab `bytes` bytes of the row go: where it was planned, or to the row's place for substitutes.
  uint64_t place_in_slab(const LoaderSlot& slot, size_t row, uint64_t bytes) {
    Row& one = slots_[slot.number].rows[row];
    one.set_apart = one.offset >= slots_[slot.number].planned_bytes || bytes > one.room;
    if (!one.set_apart) return one.offset;
    const uint64_t room = row_bytes_[slot.batch.shape];
    if (bytes > room)
      fail_as(ErrorCode::changed, "loader", "a clip has {} bytes where the index says at most {}", bytes, room);
    return half_batch_bytes_ + row * room;
  }

  // What was planned goes to the batch's base, substitutes to the staging area, at the same place.
  uint64_t place_on_gpu(const SlotState& state, uint64_t offset) const {
    return offset + (offset < half_batch_bytes_ ? state.base : state.staging);
  }

  // Starts loading the used part of the clip's samples and notes where they will be. Returns the bytes.
  uint64_t load_samples(const CorpusClip& clip, const LoaderSlot& slot, size_t row) {
    SlotState& state = slots_[slot.number];
    Row& one = state.rows[row];
    one.mapped = {}, one.in_slab = false;
    // Where it is to be kept in host memory it is read there; a substitute never is.
    std::byte* const kept =
        keeps_in_host_memory(one) && !one.from_cache && slot.bad[row].empty() ? one.cached->host : nullptr;
    if (!clip.wav) return load_decoded(clip, slot, row, kept);
    const std::span<const std::byte> file = clip.place.part ? files_.bytes_of(clip.place) : std::span<std::byte>();
    if (clip.place.first_byte < file.size() && clip.place.bytes <= file.size() - clip.place.first_byte) {
      const std::span<const std::byte> bytes = file.subspan(clip.place.first_byte, clip.place.bytes);
      const WavLayout layout = layout_of(clip, bytes);
      const auto frame = static_cast<uint64_t>(layout.frame_bytes());
      const auto samples = bytes.subspan(layout.data_offset_bytes + clip.first_sample * frame, clip.samples * frame);
      one.clip = gpu_clip(clip, layout, place_on_gpu(state, place_in_slab(slot, row, samples.size())));
      one.mapped = samples;
      return samples.size();
    }
    if (kept != nullptr && clip.place.bytes > one.room) changed(clip);
    const uint64_t offset = kept != nullptr ? one.offset : place_in_slab(slot, row, clip.place.bytes);
    const std::span bytes(kept != nullptr ? kept : state.slab->memory.data() + head_bytes_ + offset, clip.place.bytes);
    const WavLayout layout = read_used_bytes(clip, bytes);
    const auto used_bytes = clip.samples * static_cast<uint64_t>(layout.frame_bytes());
    const uint64_t first_byte = layout.data_offset_bytes;
    if (kept != nullptr) {
      one.mapped = bytes.subspan(first_byte, used_bytes);
      one.clip = gpu_clip(clip, layout, place_on_gpu(state, offset));
    } else {
      one.clip = gpu_clip(clip, layout, place_on_gpu(state, offset) + first_byte);
      one.in_slab = true;
    }
    return first_byte + used_bytes;
  }

  // The file as it lies if its first sample is used, in one read; otherwise the used samples alone. Where they begin is
  // the layout's offset.
  static WavLayout read_used_bytes(const CorpusClip& clip, std::span<std::byte> into) {
    if (clip.first_sample == 0) {
      read_bytes(clip.place, into);
      return layout_of(clip, into);
    }
    const WavLayout layout = read_wav_part(clip.place, clip.first_sample, clip.samples, into);
    if (layout.sample_rate != clip.sample_rate) changed(clip);
    return layout;
  }

  uint64_t load_decoded(const CorpusClip& clip, const LoaderSlot& slot, size_t row, std::byte* kept) {
    SlotState& state = slots_[slot.number];
    Row& one = state.rows[row];
    const Clip audio = read_clip(clip.place, clip.first_sample, clip.samples);
    if (audio.samples.size() != clip.samples || audio.sample_rate != clip.sample_rate) changed(clip);
    const uint64_t bytes = clip.samples * sizeof(float);
    if (kept != nullptr && bytes > one.room) changed(clip);
    const uint64_t offset = kept != nullptr ? one.offset : place_in_slab(slot, row, bytes);
    std::byte* const target = kept != nullptr ? kept : state.slab->memory.data() + head_bytes_ + offset;
    std::memcpy(target, audio.samples.data(), bytes);
    one.clip =
        gpu_clip(clip, {SampleFormat::float_32, 1, clip.sample_rate, 0, clip.samples}, place_on_gpu(state, offset));
    one.in_slab = kept == nullptr;
    if (kept != nullptr) one.mapped = std::span(target, bytes);
    return clip.place.bytes;
  }

  [[noreturn]] static void changed(const CorpusClip& clip) {
    fail_as(ErrorCode::changed, "loader", "{} has changed since the corpus was prepared", clip.place.name());
  }

  static WavLayout layout_of(const CorpusClip& clip, std::span<const std::byte> bytes) {
    const WavLayout layout = parse_wav(memory_source(clip.place.name(), bytes));
    if (layout.sample_rate != clip.sample_rate || clip.first_sample > layout.frames ||
        clip.samples > layout.frames - clip.first_sample) {
      changed(clip);
    }
    return layout;
  }

  static GpuClip gpu_clip(const CorpusClip& clip, const WavLayout& layout, uint64_t at) {
    return {at, static_cast<uint32_t>(clip.samples), layout.sample_rate, layout.channels, layout.format};
  }

  void copy_samples(uint64_t sequence, const SlotState& state, std::byte* arena, cudaStream_t copies) {
    const std::byte* const samples = state.slab->memory.data() + head_bytes_;
    bool planned = false;  // something lies in the slab where it was planned
    std::vector<const void*> sources;
    std::vector<void*> targets;
    std::vector<size_t> sizes;
    const auto copy = [&](uint64_t to, const std::byte* from, uint64_t bytes) {
      targets.push_back(arena + to), sources.push_back(from), sizes.push_back(bytes);
    };
    for (size_t row = 0; row < state.rows.size(); ++row) {
      const Row& one = state.rows[row];
      planned = planned || (one.in_slab && !one.set_apart);
      if (!one.mapped.empty()) copy(one.clip.offset_bytes, one.mapped.data(), one.mapped.size());
      if (one.in_slab && one.set_apart) {
        const uint64_t room = row_bytes_[state.shape], at = half_batch_bytes_ + row * room;
        copy(state.staging + at, samples + at, room);
      }
    }
    for (size_t row = 0; row < state.references.size(); ++row) {
      if (!state.references[row].in_slab) continue;
      const uint64_t at = batch_bytes_ + row * reference_bytes_;
      copy(state.staging + at, samples + at, state.references[row].clip.samples * sizeof(float));
    }
    if (!planned && sizes.empty()) return;
    // The mel of the batch that had this staging area before must be done with it.
    const Event*& user = staging_users_[sequence % staging_areas];
    if (user != nullptr) user->hold_up(copies);
    user = &state.ready;
    // First all that was planned, in one piece; then, over it, the rows that come from elsewhere.
    if (planned) {
      CUDA_CHECK(cudaMemcpyAsync(arena + state.base, samples, state.planned_bytes, cudaMemcpyHostToDevice, copies));
    }
    copy_all(targets, sources, sizes, copies);
  }

  const Corpus& corpus_;
  const RowBuilder builder_;
  const int device_;
  const bool overlap_;
  uint64_t half_batch_bytes_ = 0, batch_bytes_ = 0, head_bytes_ = 0;
  uint64_t reference_bytes_ = 0;     // of the longest reference
  uint64_t area_bytes_ = 0;          // of a batch with its references, in a slab and in a staging area
  std::vector<uint64_t> row_bytes_;  // of the largest clip, per shape
  RegisteredFiles files_;
  std::vector<std::unique_ptr<Slab>> slabs_;
  BoundedQueue<Slab*> free_slabs_;
  DeviceBuffer arena_;  // the staging areas, then the clips that stay
  std::vector<SlotState> slots_;
  const Event* staging_users_[staging_areas] = {};
  std::unique_ptr<MelGpu> mel_;
  std::vector<std::unique_ptr<CachedClip>> cached_;
  uint64_t cache_used_ = 0;
  const uint64_t cache_end_;
  HostCache host_cache_;
  std::vector<Stream> copies_;
  Stream features_;
};

}  // namespace

std::unique_ptr<LoaderBackend> make_gpu_backend(const Corpus& corpus, const BatchPlan& plan,
                                                const LoaderOptions& options) {
  CUDA_CHECK(cudaSetDevice(options.device));
  return std::make_unique<GpuBackend>(corpus, plan, options);
}

}  // namespace myxtts
