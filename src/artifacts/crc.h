// The cyclic redundancy check of TFRecord: CRC-32C, reflected, with Castagnoli's polynomial.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace myxtts {

inline uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) * 0x82F63B78U);
      made[i] = crc;
    }
    return made;
  }();
  uint32_t crc = ~0U;
  for (const char byte : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~crc;
}

}  // namespace myxtts
