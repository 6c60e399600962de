#include "base/hash.h"

#include <vector>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

// Expected values from the reference implementation (Python's xxhash package).
TEST(Hash, is_xxh64) {
  EXPECT_EQ(hash_hex(hash_text("")), "ef46db3751d8e999");
  EXPECT_EQ(hash_hex(hash_text("a")), "d24ec4f1a98c6e5b");
  EXPECT_EQ(hash_hex(hash_text("Nobody inspects the spammish repetition")), "fbcea83c8a378bf1");
  EXPECT_EQ(hash_hex(hash_text("xxhash", 20141025)), "b559b98d844e0635");
}

TEST(Hash, every_length_up_to_a_few_blocks_differs_from_its_neighbour) {
  const std::vector<char> bytes(200, 'x');
  for (size_t size = 1; size < bytes.size(); ++size)
    EXPECT_NE(hash_bytes(bytes.data(), size), hash_bytes(bytes.data(), size - 1));
}

TEST(Hash, pieces_of_any_size_give_the_hash_of_the_whole) {
  std::vector<std::byte> bytes(300);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37);
  for (size_t size = 0; size < bytes.size(); ++size) {
    for (const size_t piece : {1, 5, 31, 32, 33, 100}) {
      StreamHash hash(7);
      for (size_t at = 0; at < size; at += piece) hash.add(std::span(bytes).subspan(at, std::min(piece, size - at)));
      ASSERT_EQ(hash.value(), hash_bytes(bytes.data(), size, 7)) << size << " bytes in pieces of " << piece;
    }
  }
}

}  // namespace
}  // namespace myxtts
