// Tensors of libtorch as what a safetensors file holds, and back. Neither copies.
#pragma once

#include "base/error.h"
#include "record/safetensors.h"

#include <filesystem>
#include <string>
#include <utility>

#include <ATen/ATen.h>

namespace myxtts {

// `tensor` is float or int32, contiguous and on the CPU, and must outlive the view.
inline TensorView as_view(std::string name, const at::Tensor& tensor) {
  return {std::move(name),
          tensor.scalar_type() == at::kInt ? "I32" : "F32",
          tensor.sizes().vec(),
          {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}};
}

// For reading only, and as long as the file is open; `file` is what an Error about another type names.
inline at::Tensor as_tensor(const TensorView& view, const std::filesystem::path& file) {
  if (view.dtype != "F32" && view.dtype != "I32") {
    reject_input("safetensors", "{}: {} is {}, where F32 or I32 is expected", file.string(), view.name, view.dtype);
  }
  return at::from_blob(const_cast<std::byte*>(view.data.data()), view.shape,
                       view.dtype == "I32" ? at::kInt : at::kFloat);
}

}  // namespace myxtts
