#include "features/npy.h"

#include "base/files.h"

namespace myxtts {

void write_npy(const std::filesystem::path& path, std::span<const float> values, int64_t rows, int64_t columns) {
  std::string header = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, columns);
  constexpr size_t prologue = 10, alignment = 64;
  header.append(alignment - (prologue + header.size() + 1) % alignment, ' ');
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  const auto size = static_cast<uint16_t>(header.size());
  file.append(reinterpret_cast<const char*>(&size), 2).append(header);
  file.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  write_file_atomically(path, file);
}

}  // namespace myxtts
