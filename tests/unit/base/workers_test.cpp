#include "base/workers.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

TEST(Workers, parallel_for_visits_every_index_once) {
  std::vector<std::atomic<int>> visits(1000);
  parallel_for(visits.size(), 4, [&](size_t i) { ++visits[i]; });
  for (const auto& count : visits) EXPECT_EQ(count, 1);
}

TEST(Workers, the_first_error_reaches_the_caller_and_the_others_stop) {
  std::atomic<int64_t> done = 0;
  const auto work = [&](size_t i) {
    if (i == 10) throw std::runtime_error("clip 10");
    ++done;
  };
  // Too many to finish: it returns only if the others stop.
  EXPECT_THROW(parallel_for(size_t{1} << 60, 4, work), std::runtime_error);
  EXPECT_GE(done, 10);
}

TEST(Workers, an_error_is_announced_once_from_its_thread) {
  std::atomic<int> announced = 0;
  Workers workers(
      4, [](size_t) { throw std::runtime_error("each fails"); }, [&](const std::exception_ptr&) { ++announced; });
  EXPECT_THROW(workers.join(), std::runtime_error);
  EXPECT_EQ(announced, 1);
}

TEST(Workers, there_is_at_least_one_core) { EXPECT_GE(available_cores(), 1U); }

}  // namespace
}  // namespace myxtts
