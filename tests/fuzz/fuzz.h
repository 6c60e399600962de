// What the fuzz targets share. A bad input must give an Error and nothing else: whatever escapes beyond that, crashes,
// hangs or takes too much memory is a finding.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

namespace myxtts::fuzz {

using Input = std::span<const uint8_t>;

inline std::string_view text_of(Input input) { return {reinterpret_cast<const char*>(input.data()), input.size()}; }
inline std::span<const std::byte> bytes_of(Input input) { return std::as_bytes(input); }

// A byte that decides something, taken from the input's front.
inline uint8_t take_byte(Input& input) {
  if (input.empty()) return 0;
  const uint8_t byte = input.front();
  input = input.subspan(1);
  return byte;
}

// A folder of this process's own.
inline const std::filesystem::path& folder() {
  static const std::filesystem::path made = [] {
    std::string name = (std::filesystem::temp_directory_path() / "myxtts_fuzz_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    static const struct Remover {
      std::string name;
      ~Remover() { std::filesystem::remove_all(name); }
    } remover{name};
    return std::filesystem::path(name);
  }();
  return made;
}

// The input as a file of that name.
inline std::filesystem::path file_of(std::string_view content, const std::string& name = "input") {
  const std::filesystem::path path = folder() / name;
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
  return path;
}
inline std::filesystem::path file_of(Input input, const std::string& name = "input") {
  return file_of(text_of(input), name);
}

inline void expect(bool holds) {
  if (!holds) std::abort();
}

template <typename Work>
int run(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    expect(error.what()[0] == '[');
  }
  return 0;
}

}  // namespace myxtts::fuzz

#define FUZZ_TARGET(input)                                                  \
  static void fuzz_one(myxtts::fuzz::Input input);                          \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) { \
    return myxtts::fuzz::run([&] { fuzz_one({data, size}); });              \
  }                                                                         \
  static void fuzz_one([[maybe_unused]] myxtts::fuzz::Input input)
