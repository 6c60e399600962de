// Matrices in the NumPy file format. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace myxtts {

// Writes a row-major float32 array [rows, columns] atomically.
void write_npy(const std::filesystem::path& path, std::span<const float> values, int64_t rows, int64_t columns);

struct Matrix {
  std::vector<float> values;  // row-major
  int64_t rows = 0, columns = 0;
};

// Reads a row-major float32 matrix; rejects anything else.
Matrix read_npy(const std::filesystem::path& path);

}  // namespace myxtts
