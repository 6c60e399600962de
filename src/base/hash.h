// XXH64: the 64-bit content hash used for batches, settings and files. The same bytes give the same number on every
// machine, and anybody can check one with the `xxhash` package of Python (`xxhash.xxh64_intdigest`).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace myxtts {

uint64_t hash_bytes(const void* bytes, size_t size, uint64_t seed = 0);
inline uint64_t hash_text(std::string_view text, uint64_t seed = 0) {
  return hash_bytes(text.data(), text.size(), seed);
}

// The same number for bytes that come in pieces.
class StreamHash {
 public:
  explicit StreamHash(uint64_t seed = 0);
  void add(std::span<const std::byte> bytes);
  uint64_t value() const;  // of all bytes so far; more may follow

 private:
  uint64_t seed_, size_ = 0;
  std::array<uint64_t, 4> lanes_;
  std::array<std::byte, 32> rest_;  // what does not fill a block yet: size_ % 32 bytes
};

// 16 lower-case hexadecimal digits.
std::string hash_hex(uint64_t hash);

}  // namespace myxtts
