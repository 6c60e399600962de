// A named array of a batch: what it is called, what it holds, and where it lies. Does not own its memory: the batch's
// lease does (loader/batch.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace myxtts {

enum class DType { int32, float32 };
constexpr size_t dtype_bytes(DType) { return 4; }

struct Array {
  std::string name;
  DType dtype = DType::float32;
  std::vector<int64_t> dims;  // rows first; contiguous, the last dimension fastest
  int device = -1;            // -1: host memory
  std::byte* data = nullptr;

  int64_t elements() const { return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()); }
  size_t bytes() const { return static_cast<size_t>(elements()) * dtype_bytes(dtype); }
  size_t row_bytes() const { return dims.front() == 0 ? 0 : bytes() / static_cast<size_t>(dims.front()); }

  // Host memory alone; `T` is the array's own type.
  template <typename T>
  std::span<T> values() const {
    return {reinterpret_cast<T*>(data), static_cast<size_t>(elements())};
  }
};

}  // namespace myxtts
