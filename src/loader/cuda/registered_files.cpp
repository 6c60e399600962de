#include "loader/cuda/registered_files.h"

#include <cuda_runtime_api.h>

namespace myxtts {

RegisteredFiles::~RegisteredFiles() {
  for (auto& [path, file] : files_) {
    if (file.registered) cudaHostUnregister(const_cast<std::byte*>(file.mapped->bytes().data()));
  }
}

std::span<const std::byte> RegisteredFiles::bytes_of(const ClipPlace& place) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = files_.try_emplace(place.path.string());
  File& file = found->second;
  if (is_new) {
    file.mapped = std::make_unique<MappedFile>(place.path, place.root.get());
    const std::span<const std::byte> bytes = file.mapped->bytes();
    if (!bytes.empty() && registered_bytes_ + bytes.size() <= max_bytes_) {
      cudaSetDevice(device_);  // workers call this, and nothing else of CUDA
      const cudaError_t status =
          cudaHostRegister(const_cast<std::byte*>(bytes.data()), bytes.size(), cudaHostRegisterReadOnly);
      file.registered = status == cudaSuccess;
      if (!file.registered) cudaGetLastError();  // not sticky: the file is read instead
    }
    if (file.registered) registered_bytes_ += bytes.size();
  }
  const bool usable = file.registered && file.mapped->whole();
  return usable ? file.mapped->bytes() : std::span<const std::byte>();
}

}  // namespace myxtts
