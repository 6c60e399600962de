#include "base/root_folder.h"

#include "base/error.h"
#include "base/files.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

class RootFolderTest : public testing::Test {
 protected:
  const fs::path parent = fs::path(testing::TempDir()) / "myxtts_root_folder_test", folder = parent / "in";
  void SetUp() override {
    fs::remove_all(parent);
    fs::create_directories(folder / "more");
    write_file_atomically(folder / "more" / "own", "own");
    write_file_atomically(parent / "other", "other");
  }
  void TearDown() override { fs::remove_all(parent); }

  std::string read(const fs::path& path) const {
    const RootFolder root(folder);
    const ReadOnlyFile file(path, &root);
    std::string text(file.size_bytes(), '\0');
    file.read_at(0, std::as_writable_bytes(std::span(text)));
    return text;
  }
};

TEST_F(RootFolderTest, files_in_it_are_opened_whatever_leads_there) {
  fs::create_symlink("more/own", folder / "link");
  fs::create_symlink(folder / "more" / "own", folder / "absolute_link");
  fs::create_directory_symlink(folder, parent / "alias");
  for (const fs::path& path : {folder / "more" / "own", folder / "more" / ".." / "more" / "own", folder / "link",
                               folder / "absolute_link", fs::canonical(folder) / "more" / "own",
                               parent / "alias" / "more" / "own", parent / "in" / ".." / "in" / "more" / "own"}) {
    EXPECT_EQ(read(path), "own") << path;
  }
}

TEST_F(RootFolderTest, files_outside_are_not) {
  fs::create_symlink("../other", folder / "link");
  fs::create_directory_symlink(parent, folder / "up");
  fs::create_directories(parent / "inside");
  write_file_atomically(parent / "inside" / "near", "its name begins alike");
  for (const fs::path& path : {parent / "other", folder / ".." / "other", folder / "link", folder / "up" / "other",
                               parent / "inside" / "near", fs::path("/etc/passwd"), folder / "/etc/passwd"}) {
    EXPECT_THROW(read(path), Error) << path;
  }
  try {
    read(folder / "link");
  } catch (const Error& error) {
    EXPECT_NE(error.sentence().find("leads out of"), std::string::npos) << error.sentence();
    EXPECT_NE(error.sentence().find("data.allow_outside"), std::string::npos) << error.sentence();
  }
}

TEST_F(RootFolderTest, a_missing_file_is_missing) {
  try {
    read(folder / "none");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::missing);
  }
}

}  // namespace
}  // namespace myxtts
