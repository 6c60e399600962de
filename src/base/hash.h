// XXH64: the 64-bit content hash used for batches, settings and files. The same bytes give the same number on every
// machine, and anybody can check one with the `xxhash` package of Python (`xxhash.xxh64_intdigest`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace myxtts {

uint64_t hash_bytes(const void* bytes, size_t size, uint64_t seed = 0);
inline uint64_t hash_text(std::string_view text, uint64_t seed = 0) {
  return hash_bytes(text.data(), text.size(), seed);
}

// 16 lower-case hexadecimal digits.
std::string hash_hex(uint64_t hash);

}  // namespace myxtts
