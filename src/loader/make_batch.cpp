#include "loader/make_batch.h"

#include "base/workers.h"

#include <algorithm>
#include <numeric>

namespace myxtts {

uint64_t make_cpu_row(const RowBuilder& builder, MelCpu& mel, Batch& batch, std::byte* host, size_t row,
                      uint32_t planned, std::vector<BadClip>& bad) {
  const Array& out = batch["mel"];
  const auto row_values = static_cast<size_t>(out.dims[1] * out.dims[2]);
  const std::span<float> values = out.values<float>().subspan(row * row_values, row_values);
  size_t filled = 0;
  uint64_t bytes = 0;
  builder.clear(batch, host, row);
  builder.build(batch, host, row, planned, bad, [&](const CorpusClip& clip) {
    const std::vector<float> samples = read_used_part(builder.corpus(), clip);
    const size_t count = clip.length.mel_frames * static_cast<size_t>(out.dims[2]);
    mel.compute(samples, values.first(count));
    filled = count, bytes = clip.place.bytes;
  });
  std::fill(values.begin() + static_cast<std::ptrdiff_t>(filled), values.end(), 0.0F);
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
  batch.index = planned.index;
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
