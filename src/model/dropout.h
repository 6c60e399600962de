// Counter-based dropout: whether an element is kept is a pure function of (key, site, row, position, channel). No mask
// is stored; backward draws it again. The same on every device and for every padded shape; a key per step makes resumed
// runs exact. Philox 4x32 with seven rounds (Salmon et al., 2011) gives 16 random bits to each of eight channels.
#pragma once

#include "base/host_device.h"

#include <cmath>
#include <cstdint>

namespace myxtts {

constexpr int dropout_group = 8;  // channels per draw

// Which rows of a batch are computed here: row i is the whole batch's row first + i * stride.
struct RowPlace {
  int64_t first = 0, stride = 1;
};

struct Dropout {
  const int64_t* key = nullptr;  // scalar on the device of the data, changed every step; null: no dropout
  uint32_t site = 0;             // the place in the network
  uint32_t threshold = 0;        // elements with a 16-bit draw below it are dropped
  float scale = 1;               // of the kept ones: 1 / (1 - rate)
  RowPlace rows = {};
};

inline uint32_t dropout_threshold(double rate) { return static_cast<uint32_t>(std::lround(rate * 65536)); }

// Multipliers of eight adjacent channels: 0 or scale.
MYXTTS_HOST_DEVICE inline void draw_dropout(const Dropout& dropout, int64_t row, int64_t position, int64_t group,
                                            float (&multipliers)[dropout_group]) {
  const auto key = static_cast<uint64_t>(*dropout.key);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  uint32_t c0 = static_cast<uint32_t>(group), c1 = static_cast<uint32_t>(position),
           c2 = static_cast<uint32_t>(dropout.rows.first + row * dropout.rows.stride), c3 = dropout.site;
  constexpr int rounds = 7;
  for (int round = 0; round < rounds; ++round) {
    const uint64_t low = uint64_t{0xD2511F53} * c0, high = uint64_t{0xCD9E8D57} * c2;
    const uint32_t n0 = static_cast<uint32_t>(high >> 32) ^ c1 ^ k0, n2 = static_cast<uint32_t>(low >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(high), c3 = static_cast<uint32_t>(low), c0 = n0, c2 = n2;
    k0 += 0x9E3779B9, k1 += 0xBB67AE85;
  }
  const uint32_t words[4] = {c0, c1, c2, c3};
  for (int i = 0; i < dropout_group; ++i) {
    const uint32_t draw = words[i / 2] >> (16 * (i % 2)) & 0xFFFF;
    multipliers[i] = draw < dropout.threshold ? 0 : dropout.scale;
  }
}

}  // namespace myxtts
