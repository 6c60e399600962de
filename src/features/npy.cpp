#include "features/npy.h"

#include "base/error.h"
#include "base/files.h"

#include <cstring>
#include <regex>

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

Matrix read_npy(const std::filesystem::path& path) {
  const std::string file = read_text_file(path, uint64_t{1} << 32);
  const auto reject = [&] {
    reject_input("npy", "{} is not a float32 matrix in the .npy format", path.string(),
                 way_out("save it with numpy.save as float32 [rows, columns]"));
  };
  constexpr size_t prologue = 10;
  if (file.size() < prologue || file.compare(0, 7, "\x93NUMPY\x01") != 0) reject();
  uint16_t size = 0;
  std::memcpy(&size, file.data() + 8, sizeof size);
  if (file.size() < prologue + size) reject();
  const std::string header = file.substr(prologue, size);
  static const std::regex shape_pattern(R"('shape': \((\d{1,9}), (\d{1,9})\))");
  std::smatch shape;
  if (header.find("'descr': '<f4'") == std::string::npos ||
      header.find("'fortran_order': False") == std::string::npos || !std::regex_search(header, shape, shape_pattern)) {
    reject();
  }
  Matrix matrix;
  matrix.rows = std::stoll(shape[1]), matrix.columns = std::stoll(shape[2]);
  const auto bytes = static_cast<size_t>(matrix.rows * matrix.columns) * sizeof(float);
  if (file.size() - prologue - size != bytes) reject();
  matrix.values.resize(bytes / sizeof(float));
  if (bytes > 0) std::memcpy(matrix.values.data(), file.data() + prologue + size, bytes);
  return matrix;
}

}  // namespace myxtts
