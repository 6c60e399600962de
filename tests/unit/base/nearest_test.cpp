#include "base/nearest.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {

TEST(Nearest, counts_inserts_removals_changes_and_swaps) {
  EXPECT_EQ(edit_distance("batch", "batch"), 0U);
  EXPECT_EQ(edit_distance("batch", "btach"), 1U);
  EXPECT_EQ(edit_distance("batch", "bach"), 1U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
}

TEST(Nearest, finds_what_was_meant) {
  EXPECT_EQ(nearest("bacth_size", {"num_workers", "batch_size", "seed"}), "batch_size");
  EXPECT_EQ(nearest("anything", {}), "");
}

}  // namespace
}  // namespace myxtts
