#include "artifacts/tensorboard.h"

#include "artifacts/crc.h"
#include "base/error.h"
#include "base/files.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

// That TensorBoard reads the events is tested in tests/program/test_artifacts.py.
TEST(Tensorboard, the_checksum_is_that_of_the_standard) { EXPECT_EQ(crc32c("123456789"), 0xE3069283U); }

TEST(Tensorboard, two_writers_at_once_have_two_files) {
  const fs::path folder = fs::path(testing::TempDir()) / "myxtts_tensorboard_test" / "new";
  EventWriter one(folder), two(folder);
  EXPECT_NE(one.path(), two.path());
  one.scalar("loss", 1, 2);
  one.flush();
  EXPECT_GT(fs::file_size(one.path()), 40U);
  fs::remove_all(folder.parent_path());
}

TEST(Tensorboard, a_folder_that_cannot_be_made_is_named) {
  const fs::path file = fs::path(testing::TempDir()) / "myxtts_tensorboard_file";
  write_file_atomically(file, "a file, not a folder");
  try {
    const EventWriter writer(file / "runs");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(file.string()), std::string::npos) << error.what();
  }
  fs::remove(file);
}

}  // namespace
}  // namespace myxtts
