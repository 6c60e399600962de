// Pluralises: "1 shape", "8 shapes".
#pragma once

#include <cstdint>
#include <string>

namespace myxtts {

// `many` overrides the default plural, `one` plus s.
inline std::string counted(uint64_t count, const std::string& one, const std::string& many = {}) {
  return std::to_string(count) + " " + (count == 1 ? one : many.empty() ? one + "s" : many);
}

}  // namespace myxtts
