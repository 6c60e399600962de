// Tensors of libtorch as what a safetensors file holds, and back.
#pragma once

#include "artifacts/safetensors.h"
#include "model/parameters.h"

#include <filesystem>
#include <string>

#include <ATen/core/Tensor.h>

namespace myxtts {

// Without a copy. `tensor` is float, bfloat16 or int32, contiguous and on the CPU, and must outlive the view.
TensorView as_view(std::string name, const at::Tensor& tensor);

// Without a copy: for reading only, and as long as the file is open. `file` is what an Error about another type names.
at::Tensor as_tensor(const TensorView& view, const std::filesystem::path& file);

// The same, checked to be float and of that shape.
at::Tensor as_tensor(const TensorView& view, const std::filesystem::path& file, at::IntArrayRef shape);

// Throws Error unless every parameter of the layout is in the file, each under `prefix` and its name.
void check_parameters(const SafetensorsFile& file, const std::filesystem::path& path, const std::string& prefix,
                      const ParameterLayout& layout);

// Copies every parameter of the layout, each under `prefix` and its name, into a flat buffer.
void load_flat(const SafetensorsFile& file, const std::filesystem::path& path, const std::string& prefix,
               const ParameterLayout& layout, at::Tensor& flat);

}  // namespace myxtts
