#include "base/memory.h"

#include "base/files.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

class Memory : public testing::Test {
 protected:
  fs::path root = fs::path(testing::TempDir()) / "myxtts_memory_test";
  void SetUp() override {
    fs::remove_all(root);
    put("proc/meminfo", "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    600 kB\nHugePages:  0\n");
  }
  void TearDown() override { fs::remove_all(root); }
  void put(const std::string& file, const std::string& text) const {
    fs::create_directories((root / file).parent_path());
    write_file_atomically(root / file, text);
  }
};

TEST_F(Memory, is_the_machines_where_nothing_limits_it) {
  put("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(host_memory(root).total_bytes, 1000U << 10);
  EXPECT_EQ(host_memory(root).available_bytes, 600U << 10);
  EXPECT_GT(host_memory().total_bytes, host_memory().available_bytes);
}

TEST_F(Memory, is_what_the_containers_group_leaves) {
  put("sys/fs/cgroup/memory.max", "409600\n");
  put("sys/fs/cgroup/memory.current", "102400\n");
  EXPECT_EQ(host_memory(root).total_bytes, 409600U);
  EXPECT_EQ(host_memory(root).available_bytes, 307200U);
  put("sys/fs/cgroup/memory.current", "500000\n");  // above the limit for a moment
  EXPECT_EQ(host_memory(root).available_bytes, 0U);
}

TEST_F(Memory, is_what_its_own_group_and_those_above_leave) {
  put("proc/self/cgroup", "0::/jobs/this\n");
  put("sys/fs/cgroup/jobs/memory.max", "204800\n");
  put("sys/fs/cgroup/jobs/this/memory.max", "max\n");
  EXPECT_EQ(host_memory(root).total_bytes, 204800U);
}

TEST_F(Memory, is_limited_by_groups_of_version_1) {
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "512000\n");
  put("sys/fs/cgroup/memory/memory.usage_in_bytes", "12000\n");
  EXPECT_EQ(host_memory(root).available_bytes, 500000U);
}

}  // namespace
}  // namespace myxtts
