// Reads and writes safetensors files, compatible with the Python package `safetensors`.
//
// Files written here carry two XXH64 checksums in their metadata, in hexadecimal. `checksum` covers all data bytes in
// file order. `header_checksum` covers the header with zeros in its own place, always the first value, so that it is
// found without parsing. Files without checksums are accepted.
#pragma once

#include "base/mapped_file.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace myxtts {

// Does not own its data.
struct TensorView {
  std::string name;
  std::string dtype;  // safetensors name: "F32", "BF16", "I64", ...
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
};

using SafetensorsMetadata = std::map<std::string, std::string>;

// Bytes per element; 0 for an unknown type.
int64_t safetensors_element_bytes(std::string_view dtype);

// Writes the widest elements first, so that each tensor is aligned; data start at a multiple of 64. Atomic: writes a
// temporary file, syncs and renames. Does not copy the data. Throws Error.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const SafetensorsMetadata& metadata = {});

// A memory-mapped file: tensors are read on access, and views are valid as long as the object. The constructor
// validates the whole header and throws Error. Any thread.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(std::filesystem::path path);

  std::vector<std::string> names() const;                 // sorted
  const TensorView* find(std::string_view name) const;    // null if missing
  const TensorView& tensor(std::string_view name) const;  // throws if missing
  const SafetensorsMetadata& metadata() const { return metadata_; }

  // Reads all data; throws Error if they do not match the checksum.
  void verify() const;
  // Throws Error if the file was cut short since it was opened: what was read of it then may be zeros.
  void check_whole() const;

 private:
  std::filesystem::path path_;
  MappedFile file_;
  std::span<const std::byte> data_;
  SafetensorsMetadata metadata_;
  std::map<std::string, TensorView, std::less<>> tensors_;
};

}  // namespace myxtts
