#include "base/mapped_file.h"

#include "base/error.h"
#include "base/files.h"

#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

constexpr size_t mapped_bytes = 1 << 20;
constexpr int survived = 42;

class MappedFiles : public testing::Test {
 protected:
  fs::path path = fs::path(testing::TempDir()) / "myxtts_mapped_file_test";
  void SetUp() override { write_file_atomically(path, std::string(mapped_bytes, '\1')); }
  void TearDown() override { fs::remove(path); }
};

size_t sum_of(std::span<const std::byte> bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), size_t{0},
                         [](size_t sum, std::byte byte) { return sum + static_cast<size_t>(byte); });
}

TEST_F(MappedFiles, hold_what_the_file_holds) {
  const MappedFile file(path);
  EXPECT_EQ(sum_of(file.bytes()), mapped_bytes);
  EXPECT_TRUE(file.whole());
  write_file_atomically(path, "");
  const MappedFile empty(path);
  EXPECT_TRUE(empty.bytes().empty() && empty.whole());
}

TEST_F(MappedFiles, that_are_cut_short_read_as_zeros_and_say_so) {
  const MappedFile file(path), other(path);
  ASSERT_EQ(::truncate(path.c_str(), mapped_bytes / 2), 0);
  EXPECT_FALSE(file.whole());
  EXPECT_EQ(sum_of(file.bytes()), mapped_bytes / 2);
  ASSERT_EQ(::truncate(path.c_str(), mapped_bytes), 0);
  EXPECT_FALSE(file.whole()) << "the file has its length again, but what was read of it was not there";
  EXPECT_TRUE(other.whole());
}

TEST_F(MappedFiles, are_cut_short_under_many_threads) {
  for (int round = 0; round < 20; ++round) {
    write_file_atomically(path, std::string(mapped_bytes, '\1'), Sync::no);
    const MappedFile file(path);
    std::vector<std::thread> readers;
    std::vector<size_t> sums(4);
    for (size_t& sum : sums) readers.emplace_back([&] { sum = sum_of(file.bytes()); });
    ASSERT_EQ(::truncate(path.c_str(), 0), 0);
    for (std::thread& reader : readers) reader.join();
    for (const size_t sum : sums) EXPECT_LE(sum, mapped_bytes);
    EXPECT_FALSE(file.whole());
  }
}

TEST_F(MappedFiles, do_not_hide_a_bus_error_of_others) {
  const MappedFile file(path);
  EXPECT_EXIT(
      {
        const ReadOnlyFile own(path);
        void* const memory = ::mmap(nullptr, mapped_bytes, PROT_READ, MAP_SHARED, own.descriptor(), 0);
        if (memory == MAP_FAILED || ::truncate(path.c_str(), 0) != 0) ::_exit(survived);
        static_cast<void>(*static_cast<volatile char*>(memory));
        ::_exit(survived);
      },
      // By the signal, or by a sanitizer's handler for it.
      [](int status) { return !WIFEXITED(status) || WEXITSTATUS(status) != survived; }, "");
}

}  // namespace
}  // namespace myxtts
