#include "base/files.h"

#include "base/error.h"

#include <fstream>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  fs::path folder = fs::path(testing::TempDir()) / "myxtts_files_test";
  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }
};

TEST_F(Files, a_written_file_reads_back_and_leaves_no_temporary) {
  write_file_atomically(folder / "a.txt", "first");
  write_file_atomically(folder / "a.txt", "second");
  EXPECT_EQ(read_text_file(folder / "a.txt", 100), "second");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
}

TEST_F(Files, a_failed_write_keeps_the_old_content) {
  write_file_atomically(folder / "a.txt", "old");
  fs::create_directories(folder / "busy" / "inside");
  EXPECT_THROW(write_file_atomically(folder / "busy", "new"), Error);  // a folder cannot be replaced by a file
  EXPECT_THROW(write_file_atomically(folder / "missing" / "b.txt", "new"), Error);
  EXPECT_EQ(read_text_file(folder / "a.txt", 100), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 2);
}

TEST_F(Files, what_cannot_be_read_is_named) {
  try {
    read_text_file(folder / "nothing.yaml", 100);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::missing);
    EXPECT_NE(std::string(error.what()).find("nothing.yaml"), std::string::npos);
  }
  EXPECT_THROW(read_text_file(folder, 100), Error);
  write_file_atomically(folder / "large", std::string(101, 'x'));
  EXPECT_THROW(read_text_file(folder / "large", 100), Error);
}

TEST_F(Files, a_read_past_the_end_is_short) {
  write_file_atomically(folder / "a", "0123456789");
  const ReadOnlyFile file(folder / "a");
  std::byte bytes[8];
  EXPECT_EQ(file.read_at(6, bytes), 4U);
  EXPECT_EQ(static_cast<char>(bytes[0]), '6');
  EXPECT_EQ(file.read_at(10, bytes), 0U);
}

TEST_F(Files, of_processes_that_were_killed_are_removed_and_those_being_written_stay) {
  const pid_t child = ::fork();
  if (child == 0) {
    new FileWriter(folder / "killed");
    ::_exit(0);  // as SIGKILL does: nothing is cleaned up
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  FileWriter file(folder / "written");
  EXPECT_EQ(list_folder(folder).size(), 2U);
  remove_leftovers(folder);
  EXPECT_EQ(list_folder(folder).size(), 1U);
  file.finish();
  EXPECT_EQ(list_folder(folder), std::vector<fs::path>{folder / "written"});
}

}  // namespace
}  // namespace myxtts
