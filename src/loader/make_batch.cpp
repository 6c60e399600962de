#include "loader/make_batch.h"

#include "base/workers.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace myxtts {

namespace {

std::span<float> row_of(const Array& array, size_t row) {
  const size_t values = array.row_bytes() / sizeof(float);
  return array.values<float>().subspan(row * values, values);
}

// A row of a computed array: zeros, but for what it is filled with last.
class MelRow {
 public:
  MelRow(const Array& array, size_t row) : n_mels_(static_cast<size_t>(array.dims[2])), values_(row_of(array, row)) {
    std::ranges::fill(values_, 0.0F);
  }

  void fill(MelCpu& mel, const CorpusClip& clip, const std::vector<float>& samples) {
    mel.compute(samples, values_.first(clip.length.mel_frames * n_mels_));
  }

 private:
  size_t n_mels_;
  std::span<float> values_;
};

// Samples and mel of a crop, into rows of zeros: a clip may be too short for them.
void fill_crop(MelCpu& mel, const Batch& batch, size_t row, const std::vector<float>& samples) {
  const std::span<float> crop = row_of(batch["samples"], row), frames = row_of(batch["mel"], row);
  std::copy_n(samples.begin(), std::min(samples.size(), crop.size()), crop.begin());
  const Mel computed = mel.compute(samples);
  std::copy_n(computed.values.begin(), std::min(computed.values.size(), frames.size()), frames.begin());
}

}  // namespace

uint64_t make_cpu_row(const RowBuilder& builder, MelCpu& mel, Batch& batch, std::byte* host, size_t row,
                      uint32_t planned, std::vector<BadClip>& bad) {
  MelRow main(batch["mel"], row);
  if (builder.takes_crops()) std::ranges::fill(row_of(batch["samples"], row), 0.0F);
  std::optional<MelRow> reference;
  if (builder.has_reference(batch, row)) reference.emplace(batch["reference"], row);
  uint64_t bytes = 0;
  builder.clear(batch, host, row);
  builder.build(
      batch, host, row, planned, bad,
      [&](const CorpusClip& clip) {
        if (builder.takes_crops()) {
          fill_crop(mel, batch, row, read_used_part(builder.corpus(), builder.crop(batch, row, clip)));
        } else {
          main.fill(mel, clip, read_used_part(builder.corpus(), clip));
        }
        bytes = clip.place.bytes;
      },
      [&](const CorpusClip& clip) { reference->fill(mel, clip, read_used_part(builder.corpus(), clip)); });
  return bytes;
}

BatchLease make_batch(const RowBuilder& builder, const PlannedBatch& planned, size_t threads) {
  struct Owned {
    Batch batch;
    std::vector<std::byte> memory;
  };
  const auto owned = std::make_shared<Owned>();
  Batch& batch = owned->batch;
  const size_t rows = planned.clips.size();
  batch.epoch = planned.epoch, batch.index = planned.index;
  batch.clips = planned.clips;
  batch.lengths.resize(rows);
  builder.declare(batch, planned.shape);
  owned->memory.resize(packed_bytes(batch));
  std::byte* const host = owned->memory.data();
  builder.place(batch, host, host + builder.host_bytes(batch), -1);
  std::vector<std::vector<BadClip>> bad(rows);
  std::vector<uint64_t> bytes(rows);
  parallel_for(rows, threads, [&](size_t row) {
    MelCpu mel(builder.corpus().mel);
    bytes[row] = make_cpu_row(builder, mel, batch, host, row, planned.clips[row], bad[row]);
  });
  for (const std::vector<BadClip>& of_row : bad)
    batch.replaced.insert(batch.replaced.end(), of_row.begin(), of_row.end());
  for (const RowLength& row : batch.lengths) batch.seconds += row.seconds;
  batch.times.bytes_read = std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
  return {owned, &owned->batch};
}

}  // namespace myxtts
