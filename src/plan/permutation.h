// A keyed permutation of [0, size): where an item goes follows from the key alone, in constant time and without a
// table, so that any position of any epoch can be asked for directly.
#pragma once

#include <cstdint>

namespace myxtts {

class Permutation {
 public:
  Permutation(uint64_t size, uint64_t key);

  uint64_t operator()(uint64_t i) const;  // i < size

 private:
  uint64_t size_;
  uint64_t key_;
  int half_bits_;
};

}  // namespace myxtts
