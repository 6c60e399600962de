// NumPy's file format, for arrays that leave the program.
#pragma once

#include <filesystem>
#include <span>

namespace myxtts {

// A float32 array [rows, columns], row after row; written atomically.
void write_npy(const std::filesystem::path& path, std::span<const float> values, int64_t rows, int64_t columns);

}  // namespace myxtts
