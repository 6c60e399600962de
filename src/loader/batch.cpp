#include "loader/batch.h"

#include "base/error.h"
#include "base/hash.h"
#include "device/device.h"
#include "loader/row_builder.h"

#include <cstring>

namespace myxtts {
namespace {

struct HostBatch {
  Batch batch;
  std::vector<std::byte> memory;
};

}  // namespace

int64_t Batch::valid_frames() const {
  int64_t frames = 0;
  for (const RowLength& row : lengths) frames += row.mel_frames;
  return frames;
}

int64_t Batch::padded_frames() const {
  const Array& mel = (*this)["mel"];
  return mel.dims[0] * mel.dims[1];
}

const Array& Batch::operator[](std::string_view name) const {
  for (const Array& array : arrays) {
    if (array.name == name) return array;
  }
  fail("batch", "it holds no array '{}'", name);
}

uint64_t Batch::hash() const {
  uint64_t hash = 0;
  for (const Array& array : arrays) hash = hash_bytes(array.data, array.bytes(), hash);
  return hash;
}

size_t packed_bytes(const Batch& batch) {
  size_t bytes = 0;
  for (const Array& array : batch.arrays) bytes += aligned_bytes(array.bytes());
  return bytes;
}

void place_arrays(Batch& batch, std::byte* memory, int device) {
  for (Array& array : batch.arrays) {
    array.data = memory, array.device = device;
    memory += aligned_bytes(array.bytes());
  }
}

BatchLease copy_to_host(const Batch& batch) {
  const auto copy = std::make_shared<HostBatch>();
  copy->batch = batch;
  copy->memory.resize(packed_bytes(batch));
  place_arrays(copy->batch, copy->memory.data(), -1);
  for (size_t i = 0; i < batch.arrays.size(); ++i) {
    const Array &from = batch.arrays[i], &to = copy->batch.arrays[i];
    if (from.device < 0) {
      std::memcpy(to.data, from.data, from.bytes());
    } else {
      download(from.device, from.data, {to.data, to.bytes()});
    }
  }
  return {copy, &copy->batch};
}

}  // namespace myxtts
