// Text files line by line, in bounded memory whatever the file holds. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

namespace myxtts {

struct TextLine {
  std::string_view text;  // without its end; valid during the call
  int64_t number = 0;     // counted from 1
  bool cut = false;       // it is longer than max_line_bytes; this is its beginning
};

constexpr size_t max_line_bytes = size_t{1} << 20;

// Every line that is not empty, without a byte-order mark or CR. Throws Error with the path and the system's reason.
// Begins at byte `from`; returns where the last whole line ends.
uint64_t read_lines(const std::filesystem::path& path, const std::function<void(const TextLine&)>& take,
                    uint64_t from = 0);

}  // namespace myxtts
