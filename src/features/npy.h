// Writes arrays in the NumPy file format.
#pragma once

#include <filesystem>
#include <span>

namespace myxtts {

// Writes a row-major float32 array [rows, columns] atomically.
void write_npy(const std::filesystem::path& path, std::span<const float> values, int64_t rows, int64_t columns);

}  // namespace myxtts
