// XXH64, the content hash of batches, settings and files. Portable; Python checks it with `xxhash.xxh64_intdigest`.
// Pure functions; any thread.
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

// Incremental hash with the same result.
class StreamHash {
 public:
  explicit StreamHash(uint64_t seed = 0);
  void add(std::span<const std::byte> bytes);
  uint64_t value() const;  // of all bytes so far; more may follow

 private:
  uint64_t seed_, size_ = 0;
  std::array<uint64_t, 4> lanes_;
  std::array<std::byte, 32> rest_;  // incomplete block of size_ % 32 bytes
};

// 16 lower-case hexadecimal digits.
std::string hash_hex(uint64_t hash);

}  // namespace myxtts
