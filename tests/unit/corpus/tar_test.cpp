#include "corpus/tar.h"

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"

#include <cstdlib>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

class TarFolder : public testing::Test {
 protected:
  fs::path folder = fs::path(testing::TempDir()) / "myxtts_tar_test";
  fs::path tar = folder / "a.tar";
  void SetUp() override {
    fs::remove_all(folder);
    fs::create_directories(folder);
  }
  void TearDown() override { fs::remove_all(folder); }

  std::string read(uint64_t first, uint64_t bytes) const {
    std::string text(bytes, '\0');
    EXPECT_EQ(ReadOnlyFile(tar).read_at(first, std::as_writable_bytes(std::span(text))), bytes);
    return text;
  }
  std::map<std::string, std::string> members() const {
    std::map<std::string, std::string> found;
    list_tar(tar, [&](const TarMember& member) { found[member.name] = read(member.first_byte, member.bytes); });
    return found;
  }
  std::string reason() const {
    try {
      list_tar(tar, [](const TarMember&) {});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  void write_tar(const std::map<std::string, std::string>& content) const {
    TarWriter writer(tar);
    for (const auto& [name, text] : content) writer.add(name, bytes_of(text));
    writer.finish();
  }
  bool run(const std::string& command) const {
    return std::system(("cd '" + folder.string() + "' && " + command + " 2> errors").c_str()) == 0;
  }
};

const std::string persian = "گوینده/سلام دنیا.wav";
const std::string long_name = std::string(90, 'd') + "/" + std::string(60, 'f') + ".wav";
const std::string very_long_name = std::string(300, 'v') + "/" + std::string(300, 'w') + ".wav";

const std::map<std::string, std::string> some_files = {{"a.wav", "first"},
                                                       {"empty", ""},
                                                       {"folder/b.wav", std::string(512, 'b')},
                                                       {"folder/c.wav", std::string(1300, 'c')},
                                                       {std::string(100, 'n'), "a name of just 100 bytes"},
                                                       {long_name, "long"},
                                                       {very_long_name, "longer"},
                                                       {persian, "Persian"}};

// A header with the checksum it needs, for what no tool at hand writes.
std::string header(const std::string& name, const std::string& size_field, char type = '0') {
  std::string block(512, '\0');
  block.replace(0, name.size(), name);
  block.replace(124, size_field.size(), size_field);
  block[156] = type;
  block.replace(257, 8, std::string("ustar\00000", 8));
  block.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char byte : block) sum += static_cast<uint8_t>(byte);
  return block.replace(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
}
std::string padded(std::string text) { return text.append((512 - text.size() % 512) % 512, '\0'); }

TEST_F(TarFolder, what_was_written_is_listed_and_read_back) {
  write_tar(some_files);
  EXPECT_EQ(members(), some_files);
  uint64_t bytes = 1024;
  for (const auto& [name, text] : some_files) bytes += tar_member_bytes(name, text.size());
  EXPECT_EQ(fs::file_size(tar), bytes);
  EXPECT_EQ(first_tar_member(tar)->name, some_files.begin()->first);
}

TEST_F(TarFolder, the_same_content_gives_the_same_file) {
  write_tar(some_files);
  const std::string once = read_text_file(tar, 1 << 20);
  write_tar(some_files);
  EXPECT_EQ(once, read_text_file(tar, 1 << 20));
}

TEST_F(TarFolder, add_returns_where_the_bytes_lie_and_they_can_be_replaced) {
  TarWriter writer(tar);
  EXPECT_EQ(writer.add("a", bytes_of("12345")), 512U);
  const uint64_t first = writer.add(persian, bytes_of("abcde"));
  EXPECT_EQ(first % 512, 0U);
  writer.overwrite(first + 1, bytes_of("XYZ"));
  EXPECT_THROW(writer.overwrite(writer.position() - 1, bytes_of("XY")), Error);
  EXPECT_THROW(writer.overwrite(~uint64_t{0}, bytes_of("XY")), Error);
  writer.finish();
  EXPECT_EQ(read(first, 5), "aXYZe");
  EXPECT_EQ(members()["a"], "12345");
}

TEST_F(TarFolder, nothing_is_left_of_a_tar_that_was_not_finished) {
  {
    TarWriter writer(tar);
    writer.add("a", bytes_of("12345"));
    EXPECT_FALSE(fs::exists(tar));
    EXPECT_THROW(writer.add("", bytes_of("x")), Error);
    EXPECT_THROW(writer.add(std::string("a\0b", 3), bytes_of("x")), Error);
  }
  EXPECT_TRUE(fs::is_empty(folder));
  EXPECT_THROW(TarWriter(folder / "nowhere" / "a.tar"), Error);
}

TEST_F(TarFolder, tar_and_python_list_what_we_write) {
  write_tar(some_files);
  std::string names;
  list_tar(tar, [&](const TarMember& member) { names += member.name + "\n"; });
  if (run("tar --version | grep -q GNU")) {
    ASSERT_TRUE(run("tar --quoting-style=literal -tf a.tar > names"));
    EXPECT_EQ(read_text_file(folder / "names", 1 << 20), names);
    EXPECT_EQ(read_text_file(folder / "errors", 1 << 20), "");
  }
  if (!run("python3 --version > version")) GTEST_SKIP() << "python3 is not here";
  ASSERT_TRUE(
      run("PYTHONUTF8=1 python3 -c 'import tarfile; print(*tarfile.open(\"a.tar\").getnames(), sep=\"\\n\")' > names"));
  EXPECT_EQ(read_text_file(folder / "names", 1 << 20), names);
}

TEST_F(TarFolder, tars_of_python_in_every_format_are_read) {
  if (!run("python3 --version > version")) GTEST_SKIP() << "python3 is not here";
  std::ofstream(folder / "make.py") << R"(
import io, sys, tarfile
form = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}[sys.argv[1]]
tar = tarfile.open("a.tar", "w", format=form, pax_headers={"path": "no", "comment": "global"} if sys.argv[1] == "pax" else None)
def add(name, data=b"", type=tarfile.REGTYPE, link=""):
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname, info.mtime = len(data), type, link, 1.5 if sys.argv[1] == "pax" else 1
    tar.addfile(info, io.BytesIO(data))
add("folder", type=tarfile.DIRTYPE)
add("first.wav", b"1" * 700)
add("soft", type=tarfile.SYMTYPE, link="first.wav")
add("hard", type=tarfile.LNKTYPE, link="first.wav")
add("fifo", type=tarfile.FIFOTYPE)
add("d" * 90 + "/" + "f" * 60 + ".wav", b"2")
add("گوینده/سلام دنیا.wav", b"3" * 512)
if sys.argv[1] != "ustar":
    add("v" * 300 + "/" + "w" * 300 + ".wav", b"4")
    add("soft", type=tarfile.SYMTYPE, link="t" * 300)
add("last.wav", b"5")
tar.close()
)";
  for (const std::string format : {"ustar", "gnu", "pax"}) {
    ASSERT_TRUE(run("PYTHONUTF8=1 python3 make.py " + format)) << read_text_file(folder / "errors", 1 << 20);
    std::map<std::string, std::string> expected = {
        {"first.wav", std::string(700, '1')}, {long_name, "2"}, {persian, std::string(512, '3')}, {"last.wav", "5"}};
    if (format != "ustar") expected[very_long_name] = "4";
    EXPECT_EQ(members(), expected) << format;
  }
}

TEST_F(TarFolder, a_member_beyond_eight_gigabytes_is_passed_over) {
  const uint64_t bytes = (uint64_t{9} << 30) + 5;
  std::string size(12, '\0');
  size[0] = '\x80';
  for (int i = 0; i < 8; ++i) size[static_cast<size_t>(11 - i)] = static_cast<char>(bytes >> (8 * i));
  const std::string pax = fmt::format("19 size={}\n", bytes);
  for (const std::string& start :
       {header("big", size), header("pax", "00000000023", 'x') + padded(pax) + header("big", "00000000000")}) {
    fs::remove(tar);
    std::ofstream file(tar, std::ios::binary);
    file << start;
    file.seekp(static_cast<std::streamoff>(start.size() + bytes + 507));  // a hole
    file << header("small", "00000000003") << "abc";
    file.close();
    std::vector<TarMember> found;
    list_tar(tar, [&](const TarMember& member) { found.push_back(member); });
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].bytes, bytes);
    EXPECT_EQ(read(found[1].first_byte, found[1].bytes), "abc");
  }
}

TEST_F(TarFolder, a_pax_name_counts_more_than_a_gnu_name_in_either_order) {
  const std::string pax = header("x", "00000000014", 'x') + padded("12 path=pax\n");
  const std::string gnu = header("L", "00000000004", 'L') + padded(std::string("gnu\0", 4));
  for (const std::string& records : {pax + gnu, gnu + pax}) {
    write_file_atomically(tar, records + header("own", "00000000001") + padded("1") + header("own", "00000000000"));
    EXPECT_EQ(members(), (std::map<std::string, std::string>{{"pax", "1"}, {"own", ""}}));
  }
}

TEST_F(TarFolder, closing_blocks_may_be_missing_and_odd_bytes_may_trail) {
  write_tar({{"a", "1"}, {"b", "2"}});
  const std::string whole = read_text_file(tar, 1 << 20);
  const std::string open = whole.substr(0, whole.size() - 1024);
  const std::string unpadded = open.substr(0, open.size() - 511);
  for (const std::string& text : {open, unpadded, open + "odd", whole + "odd bytes", open + std::string(600, '\0')}) {
    write_file_atomically(tar, text);
    EXPECT_EQ(members().size(), 2U);
  }
}

TEST_F(TarFolder, one_tar_behind_another_is_read_too) {
  write_tar({{"a", "1"}, {"b", "2"}});
  const std::string first = read_text_file(tar, 1 << 20);
  write_tar({{"c", "3"}});
  write_file_atomically(tar, first + std::string(20 * 512, '\0') + read_text_file(tar, 1 << 20));
  EXPECT_EQ(members().size(), 3U);
}

TEST_F(TarFolder, what_is_not_a_plain_tar_is_named) {
  write_file_atomically(tar, std::string("\x1F\x8B\x08") + std::string(2000, 'z'));
  EXPECT_NE(reason().find("a.tar is compressed (gzip; at byte 0); unpack it to a plain tar"), std::string::npos);
  write_file_atomically(tar, "");
  EXPECT_NE(reason().find("is empty"), std::string::npos);
  write_file_atomically(tar, "short");
  EXPECT_NE(reason().find("too short"), std::string::npos);
  write_file_atomically(tar, std::string(2000, 'z'));
  EXPECT_NE(reason().find("not a tar"), std::string::npos);
  write_file_atomically(tar, std::string(10240, '\0'));
  EXPECT_EQ(reason(), "") << "a tar of nothing";
}

TEST_F(TarFolder, a_lying_header_is_named_with_its_place) {
  const std::string good = header("a", "00000000001") + padded("1");
  const auto reason_of = [&](const std::string& rest) {
    write_file_atomically(tar, good + rest);
    EXPECT_NE(reason().find("a.tar"), std::string::npos);
    EXPECT_NE(reason().find("(at byte "), std::string::npos) << reason();
    return reason();
  };
  std::string broken = header("b", "00000000001");
  broken[5] = 'x';
  EXPECT_NE(reason_of(broken).find("damaged header (at byte 1024)"), std::string::npos);
  EXPECT_NE(reason_of(header("b", "00000001000")).find("512 bytes where 0 are left"), std::string::npos);
  EXPECT_NE(reason_of(header("b", "0000000009")).find("not a number"), std::string::npos);
  EXPECT_NE(reason_of(header("b", std::string(12, '\xFF'))).find("not a number"), std::string::npos);
  EXPECT_NE(reason_of(header("b", "00000000000", 'S')).find("sparse"), std::string::npos);
  EXPECT_NE(reason_of(header("x", "00000000003", 'L') + padded("abc")).find("long name"), std::string::npos);
  for (const char type : {'x', 'L'}) {
    EXPECT_NE(reason_of(header("x", "00004000001", type) + std::string((1 << 20) + 1, 'n')).find("at most 1048576"),
              std::string::npos);
  }
  for (const std::string line : {"5 a=b\n", "99 a=b\n", "x", "6 a=b", "0 a=b\n", "18446744073709551617 a=b\n",
                                 "6 abc\n", "15 size=banana\n", "32 size=99999999999999999999999\n", "6"}) {
    const std::string size = fmt::format("{:011o}", line.size());
    EXPECT_NE(reason_of(header("x", size, 'x') + padded(line) + header("b", "00000000000")).find("pax"),
              std::string::npos)
        << line;
  }
}

// Lists the tar and reads what it claims to hold; an Error is the only complaint allowed.
void list_and_read(const fs::path& tar) {
  try {
    const ReadOnlyFile file(tar);
    list_tar(tar, [&](const TarMember& member) {
      ASSERT_LE(member.first_byte, file.size_bytes());
      ASSERT_LE(member.bytes, file.size_bytes() - member.first_byte);
    });
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("byte "), std::string::npos) << error.what();
  }
}

TEST_F(TarFolder, a_cut_at_any_place_is_survived) {
  write_tar(some_files);
  const std::string whole = read_text_file(tar, 1 << 20);
  for (size_t bytes = 0; bytes < whole.size(); bytes += 97) {
    write_file_atomically(tar, whole.substr(0, bytes), Sync::no);
    list_and_read(tar);
  }
}

TEST_F(TarFolder, flipped_bytes_are_survived) {
  write_tar(some_files);
  const std::string whole = read_text_file(tar, 1 << 20);
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    std::string text = whole;
    for (int i = 0; i < 3; ++i) text[random.below(text.size())] ^= static_cast<char>(1 + random.below(255));
    write_file_atomically(tar, text, Sync::no);
    list_and_read(tar);
  }
}

TEST_F(TarFolder, wild_headers_with_a_good_checksum_are_survived) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    std::string text;
    for (int i = 0; i < 4; ++i) {
      std::string size = fmt::format("{:011o}", random.below(2000));
      if (random.below(3) == 0) size[random.below(size.size())] = static_cast<char>(random.below(256));
      text += header("name", size, "0xLKg15S"[random.below(8)]);
      for (uint64_t lines = random.below(4); lines > 0; --lines) {
        text += fmt::format("{} {}={}\n", random.below(20), random.below(2) == 0 ? "path" : "size", random.below(9999));
      }
      text = padded(text);
    }
    write_file_atomically(tar, text, Sync::no);
    list_and_read(tar);
  }
}

}  // namespace
}  // namespace myxtts
