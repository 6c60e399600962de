#include "synth/tensor_view.h"

#include "base/error.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <ATen/ATen.h>

namespace myxtts {

TensorView as_view(std::string name, const at::Tensor& tensor) {
  return {std::move(name),
          tensor.scalar_type() == at::kInt        ? "I32"
          : tensor.scalar_type() == at::kBFloat16 ? "BF16"
                                                  : "F32",
          tensor.sizes().vec(),
          {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}};
}

at::Tensor as_tensor(const TensorView& view, const std::filesystem::path& file) {
  const std::map<std::string_view, at::ScalarType> types = {
      {"F32", at::kFloat}, {"BF16", at::kBFloat16}, {"I32", at::kInt}};
  const auto type = types.find(view.dtype);
  if (type == types.end()) {
    reject_input("safetensors", "{}: {} is {}, where F32, BF16 or I32 is expected", file.string(), view.name,
                 view.dtype);
  }
  return at::from_blob(const_cast<std::byte*>(view.data.data()), view.shape, type->second);
}

at::Tensor as_tensor(const TensorView& view, const std::filesystem::path& file, at::IntArrayRef shape) {
  const bool floating = view.dtype == "F32" || view.dtype == "BF16";
  if (!floating || !std::equal(view.shape.begin(), view.shape.end(), shape.begin(), shape.end())) {
    fail("checkpoint", "{}: {} is {} [{}], where F32 [{}] is expected", file.string(), view.name, view.dtype,
         fmt::join(view.shape, ", "), fmt::join(shape.vec(), ", "));
  }
  return as_tensor(view, file);
}

void check_parameters(const SafetensorsFile& file, const std::filesystem::path& path, const std::string& prefix,
                      const ParameterLayout& layout) {
  for (const ParameterSpec& spec : layout.specs()) as_tensor(file.tensor(prefix + spec.name), path, spec.shape);
}

void load_flat(const SafetensorsFile& file, const std::filesystem::path& path, const std::string& prefix,
               const ParameterLayout& layout, at::Tensor& flat) {
  const std::vector<at::Tensor> views = layout.views(flat);
  for (size_t i = 0; i < views.size(); ++i) {
    views[i].copy_(as_tensor(file.tensor(prefix + layout.specs()[i].name), path, layout.specs()[i].shape));
  }
  file.check_whole();
}

}  // namespace myxtts
