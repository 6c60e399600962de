#include "base/append_file.h"

#include "base/error.h"
#include "base/files.h"
#include "tools/faults.h"

#include <fstream>

#include <gtest/gtest.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

class AppendFiles : public testing::Test {
 protected:
  fs::path folder = fs::path(testing::TempDir()) / "myxtts_append_file_test";
  fs::path log = folder / "log.jsonl";
  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override {
    faults_disarm();
    fs::remove_all(folder);
  }
  std::string content() const { return read_text_file(log, 1 << 20); }
};

TEST_F(AppendFiles, pieces_follow_each_other_over_several_openings) {
  AppendFile::lines(log).append("one\n");
  AppendFile file = AppendFile::lines(log);
  file.append("two\n");
  file.append("three\n");
  EXPECT_EQ(content(), "one\ntwo\nthree\n");
}

TEST_F(AppendFiles, a_line_that_a_kill_left_half_written_is_removed) {
  for (const std::string& torn : {std::string("{\"id\": \"b"), std::string(10'000, 'x'), std::string()}) {
    std::ofstream(log) << "{\"id\": \"a\"}\n" << torn;
    AppendFile::lines(log).append("{}\n");
    EXPECT_EQ(content(), "{\"id\": \"a\"}\n{}\n");
  }
  std::ofstream(log) << "no line at all";
  AppendFile::lines(log);
  EXPECT_EQ(content(), "");
}

TEST_F(AppendFiles, a_link_is_not_followed) {
  write_file_atomically(folder / "other", "a last line without an end");
  fs::create_symlink(folder / "other", log);
  EXPECT_THROW(AppendFile::lines(log), Error);
  EXPECT_EQ(read_text_file(folder / "other", 100), "a last line without an end");
}

TEST_F(AppendFiles, a_full_disk_leaves_whole_lines_and_later_ones_are_written) {
  AppendFile file = AppendFile::lines(log);
  file.append("one\n");
  // The first write is cut short, the second finds no room: half of the line is there when it fails.
  const std::string line(5'000, 'y');
  faults_arm("log.jsonl", FAULT_SHORT, 1, 1, "pwrite");
  file.append("a short write is continued: " + line + "\n");
  EXPECT_EQ(faults_raised(), 1);
  const std::string whole = content();
  faults_arm("log.jsonl", FAULT_ENOSPC, 1, 1, "pwrite");
  EXPECT_THROW(file.append(line + "\n"), Error);
  EXPECT_EQ(content(), whole);
  file.append("three\n");
  EXPECT_EQ(content(), whole + "three\n");
}

TEST_F(AppendFiles, an_interrupted_write_is_made_again) {
  faults_arm("log.jsonl", FAULT_EINTR, 0, 0, nullptr);
  AppendFile file = AppendFile::lines(log);
  file.append("one\n");
  EXPECT_GT(faults_raised(), 0);
  faults_disarm();
  EXPECT_EQ(content(), "one\n");
}

TEST_F(AppendFiles, a_new_file_is_refused_where_there_is_one) {
  const auto first = AppendFile::create(log);
  ASSERT_NE(first, nullptr);
  first->append("x");
  EXPECT_EQ(AppendFile::create(log), nullptr);
  EXPECT_THROW(AppendFile::create(folder / "missing" / "log"), Error);
  EXPECT_EQ(content(), "x");
}

}  // namespace
}  // namespace myxtts
