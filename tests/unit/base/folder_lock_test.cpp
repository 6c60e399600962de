#include "base/folder_lock.h"

#include "base/error.h"
#include "base/files.h"

#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

class FolderLocks : public testing::Test {
 protected:
  fs::path folder = fs::path(testing::TempDir()) / "myxtts_folder_lock_test";
  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }
};

TEST_F(FolderLocks, a_second_one_is_refused_with_the_first_ones_process) {
  const FolderLock lock("train", folder);
  try {
    const FolderLock second("train", folder);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_input);
    EXPECT_NE(error.message().find("in use by process " + std::to_string(::getpid())), std::string::npos)
        << error.what();
  }
}

TEST_F(FolderLocks, one_that_is_released_leaves_nothing_and_can_be_taken_again) {
  for (int i = 0; i < 3; ++i) {
    const FolderLock lock("train", folder);
    EXPECT_TRUE(fs::exists(folder / FolderLock::file_name));
  }
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST_F(FolderLocks, that_of_a_process_that_was_killed_is_stale) {
  const pid_t child = ::fork();
  if (child == 0) {
    const FolderLock lock("train", folder);
    ::_exit(0);  // as SIGKILL does: nothing is cleaned up
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_NE(read_text_file(folder / FolderLock::file_name, 100).find("process " + std::to_string(child)),
            std::string::npos);
  const FolderLock lock("train", folder);
  EXPECT_NE(read_text_file(folder / FolderLock::file_name, 100).find("process " + std::to_string(::getpid())),
            std::string::npos);
}

TEST_F(FolderLocks, two_that_take_turns_find_it_free_or_in_use_and_nothing_else) {
  const auto take_turns = [this] {
    for (int turn = 0; turn < 3000; ++turn) {
      try {
        const FolderLock lock("train", folder);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_input) << error.what();
      }
    }
  };
  std::thread other(take_turns);
  take_turns();
  other.join();
}

TEST_F(FolderLocks, a_renamed_folder_is_left_clean) {
  const fs::path aside = folder.string() + "_aside";
  fs::remove_all(aside);
  {
    const FolderLock lock("train", folder);
    fs::rename(folder, aside);
    fs::create_directories(folder);
    const FolderLock next("train", folder);
  }
  EXPECT_TRUE(fs::is_empty(aside) && fs::is_empty(folder));
  fs::remove_all(aside);
}

}  // namespace
}  // namespace myxtts
