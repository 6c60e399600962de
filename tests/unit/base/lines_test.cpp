#include "base/lines.h"

#include "base/error.h"
#include "base/files.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

class Lines : public testing::Test {
 protected:
  fs::path file = fs::path(testing::TempDir()) / "myxtts_lines_test.txt";
  void TearDown() override { fs::remove(file); }

  std::vector<std::pair<std::string, int64_t>> lines_of(const std::string& text) {
    write_file_atomically(file, text);
    std::vector<std::pair<std::string, int64_t>> lines;
    read_lines(file, [&](const TextLine& line) {
      lines.emplace_back(line.text, line.number);
      cut += line.cut ? 1 : 0;
    });
    return lines;
  }
  int cut = 0;
};

using Numbered = std::vector<std::pair<std::string, int64_t>>;

TEST_F(Lines, come_with_their_numbers_without_ends_and_marks) {
  EXPECT_EQ(lines_of("\xEF\xBB\xBF"
                     "one\r\n\n\r\ntwo\nlast"),
            (Numbered{{"one", 1}, {"two", 4}, {"last", 5}}));
  EXPECT_EQ(lines_of(""), Numbered{});
  EXPECT_EQ(lines_of("\n\n"), Numbered{});
}

TEST_F(Lines, of_every_length_around_a_block_are_whole) {
  for (const size_t length : {65'534U, 65'535U, 65'536U, 65'537U, 131'072U}) {
    const std::string line(length, 'x');
    EXPECT_EQ(lines_of(line + "\nend\n"), (Numbered{{line, 1}, {"end", 2}})) << length;
  }
  EXPECT_EQ(cut, 0);
}

TEST_F(Lines, that_are_too_long_are_cut_and_counted_as_one) {
  const std::string line(3 * max_line_bytes + 5, 'x');
  EXPECT_EQ(lines_of(line + "\nend\n"), (Numbered{{line.substr(0, max_line_bytes), 1}, {"end", 2}}));
  EXPECT_EQ(cut, 1);
}

TEST_F(Lines, of_a_missing_file_are_an_error) {
  EXPECT_THROW(read_lines("/nowhere/at/all", [](const TextLine&) {}), Error);
}

}  // namespace
}  // namespace myxtts
