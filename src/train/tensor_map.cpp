#include "train/tensor_map.h"

#include "base/error.h"
#include "model/torch_device.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

namespace myxtts {
namespace {

at::Tensor tensor_of(const Array& array) {
  const at::Device device = torch_device(array.device);
  return at::from_blob(array.data, array.dims,
                       at::TensorOptions().device(device).dtype(array.dtype == DType::int32 ? at::kInt : at::kFloat));
}

}  // namespace

bool TensorMap::contains(std::string_view name) const {
  return std::any_of(items_.begin(), items_.end(), [&](const auto& item) { return item.first == name; });
}

const at::Tensor& TensorMap::operator[](std::string_view name) const {
  for (const auto& [key, tensor] : items_) {
    if (key == name) return tensor;
  }
  fail("train", "the batch holds no array '{}'", name);
}

at::Tensor& TensorMap::operator[](std::string_view name) { return const_cast<at::Tensor&>(std::as_const(*this)[name]); }

void TensorMap::copy_from(const TensorMap& other) {
  // Those of one type together: on a GPU that is one launch for all of them.
  std::map<at::ScalarType, std::pair<std::vector<at::Tensor>, std::vector<at::Tensor>>> by_type;
  for (auto& [name, tensor] : items_) {
    auto& [to, from] = by_type[tensor.scalar_type()];
    to.push_back(tensor), from.push_back(other[name]);
  }
  for (auto& [type, tensors] : by_type) at::_foreach_copy_(tensors.first, tensors.second, /*non_blocking=*/true);
}

RowLength longest_row(const Batch& batch) {
  RowLength longest{1, 1};
  for (const RowLength& row : batch.lengths) {
    longest.tokens = std::max(longest.tokens, row.tokens);
    longest.mel_frames = std::max(longest.mel_frames, row.mel_frames);
  }
  return longest;
}

TensorMap tensors_of(const Batch& batch, const std::optional<RowLength>& longest) {
  TensorMap tensors;
  for (const Array& array : batch.arrays) {
    at::Tensor tensor = tensor_of(array);
    if (longest && array.name == "tokens") tensor = tensor.narrow(1, 0, longest->tokens).contiguous();
    if (longest && array.name == "mel") tensor = tensor.narrow(1, 0, longest->mel_frames).contiguous();
    tensors.add(array.name, std::move(tensor));
  }
  return tensors;
}

at::Generator seeded_generator(at::Device device, uint64_t seed) {
  at::Generator generator = device.is_cpu() ? at::make_generator<at::CPUGeneratorImpl>(seed)
                                            : at::globalContext().defaultGenerator(device).clone();
  generator.set_current_seed(seed);
  return generator;
}

void draw_rows(at::Tensor& rows, int64_t dimension, const RowPlace& place,
               const std::function<void(at::Tensor&)>& draw) {
  if (place.stride == 1) return draw(rows);
  std::vector<int64_t> sizes = rows.sizes().vec();
  int64_t& all = sizes[static_cast<size_t>(dimension)];
  all *= place.stride;
  at::Tensor whole = at::empty(sizes, rows.options());
  draw(whole);
  rows.copy_(whole.slice(dimension, place.first, all, place.stride));
}

}  // namespace myxtts
