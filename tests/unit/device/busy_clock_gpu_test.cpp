#include "device/device.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

TEST(BusyClock, does_not_count_what_lies_between_two_pieces_of_work) {
  if (device_count() == 0) GTEST_SKIP() << "no GPU: the clock of its work is not tested";
  BusyClock clock(0);
  for (int piece = 0; piece < 5; ++piece) {
    clock.begin(nullptr);
    clock.end(nullptr);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // as for the next batch of an accumulation
  }
  const BusyClock::Time time = clock.take();
  EXPECT_GE(time.all_ms, 60);
  EXPECT_LT(time.busy_ms, 0.2 * time.all_ms);
}

}  // namespace
}  // namespace myxtts
