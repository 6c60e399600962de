#include "plan/permutation.h"

#include "base/random.h"

#include <bit>

namespace myxtts {

Permutation::Permutation(uint64_t size, uint64_t key) : size_(size), key_(key) {
  half_bits_ = size < 2 ? 1 : (std::bit_width(size - 1) + 1) / 2;
}

// A four-round Feistel network over the next even number of bits, walked until it lands inside: fewer than four steps
// on average.
uint64_t Permutation::operator()(uint64_t i) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  do {
    uint64_t left = i >> half_bits_, right = i & mask;
    for (uint64_t round = 0; round < 4; ++round) {
      const uint64_t mixed = Random::mix(right ^ Random::mix(key_ + round));
      const uint64_t next = (left ^ mixed) & mask;
      left = right;
      right = next;
    }
    i = left << half_bits_ | right;
  } while (i >= size_);
  return i;
}

}  // namespace myxtts
