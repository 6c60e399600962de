#include "base/time_left.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {

std::time_t local_time(int day, int hour, int minute) {
  std::tm time{};
  time.tm_year = 124, time.tm_mon = 1, time.tm_mday = day, time.tm_hour = hour, time.tm_min = minute;
  time.tm_isdst = -1;
  return std::mktime(&time);
}

TEST(TimeLeft, is_given_with_the_time_of_the_end) {
  EXPECT_EQ(time_left_text(185, local_time(10, 17, 39)), "ends about 17:42, 3 min left");
  EXPECT_EQ(time_left_text(42.9, local_time(10, 8, 0)), "ends about 08:00, 42 s left");
}

TEST(TimeLeft, names_the_date_of_an_end_on_another_day) {
  EXPECT_EQ(time_left_text(7260, local_time(28, 23, 0)), "ends about 2024-02-29 01:01, 2 h 01 min left");
}

}  // namespace
}  // namespace myxtts
