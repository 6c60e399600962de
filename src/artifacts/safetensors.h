// The safetensors format: named tensors in one file that Python's `safetensors` reads and writes too.
//
// A file written here carries two checksums in its metadata, XXH64 in hexadecimal. `checksum` is that of all data bytes
// in the order of the file. `header_checksum` is that of the whole header with zeros in its own place, which is always
// the first value of the header, so that it can be found without trusting what it protects. Files of others have
// neither, and are accepted.
#pragma once

#include "base/files.h"

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
  std::string dtype;  // as the format spells it: "F32", "BF16", "I64", ...
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
};

using SafetensorsMetadata = std::map<std::string, std::string>;

// Bytes of one element; 0 for a type that is not known here.
int64_t safetensors_element_bytes(std::string_view dtype);

// Tensors with the widest elements come first, so that each lies at a multiple of its element's size; the data begin at
// a multiple of 64. Written under a temporary name, synced and renamed: after a failure the old file is untouched. No
// copy of the data is made. Throws Error.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const SafetensorsMetadata& metadata = {});

// A file to read from. It is mapped, so that a tensor's bytes are read when they are touched; views are valid as long
// as the object is. The constructor checks the header completely and throws Error with what is wrong. Any thread.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(std::filesystem::path path);

  std::vector<std::string> names() const;                 // in alphabetical order
  const TensorView* find(std::string_view name) const;    // null where there is none
  const TensorView& tensor(std::string_view name) const;  // throws where there is none
  const SafetensorsMetadata& metadata() const { return metadata_; }

  // Reads all data and throws Error when they do not match the checksum.
  void verify() const;

 private:
  std::filesystem::path path_;
  MappedFile file_;
  std::span<const std::byte> data_;
  SafetensorsMetadata metadata_;
  std::map<std::string, TensorView, std::less<>> tensors_;
};

}  // namespace myxtts
