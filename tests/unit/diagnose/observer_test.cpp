#include "diagnose/observer.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

void take_a_while() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

TEST(Observer, of_a_foreign_loader_it_takes_the_time_from_asking_to_having) {
  Observer observer;
  for (int i = 0; i < 5; ++i) {
    if (i == 2) observer.begin();  // the first two warm up
    observer.ask();
    take_a_while();
    observer.take();
    take_a_while();
    observer.done();
  }
  observer.end();
  observer.replayed(0, 1), observer.replayed(0, 3);
  const Observation seen = observer.finish();
  ASSERT_EQ(seen.batches.size(), 3U);
  for (const ObservedBatch& batch : seen.batches) {
    EXPECT_GE(batch.wait_ms, 2);
    EXPECT_GE(batch.consume_ms(), 2);
    EXPECT_NEAR(batch.batch_ms(), batch.wait_ms + batch.consume_ms(), 1e-6);
  }
  EXPECT_GE(seen.wall_s, 0.012);
  EXPECT_EQ(seen.free_ms, 2) << "the mean of what was consumed again";
}

TEST(Observer, of_a_loader_with_stats_it_takes_what_that_waited) {
  double waited_s = 0;
  Observer observer([&] {
    LoaderStats stats;
    stats.consumer_waits_s = waited_s, stats.ready_batches = 7;
    return stats;
  });
  observer.begin();
  observer.ask();
  waited_s += 0.5;
  observer.take();
  observer.done();
  observer.end();
  const Observation seen = observer.finish();
  EXPECT_DOUBLE_EQ(seen.batches.at(0).wait_ms, 500);
  EXPECT_EQ(seen.batches[0].ready_batches, 7U);
  EXPECT_DOUBLE_EQ(seen.after.consumer_waits_s - seen.before.consumer_waits_s, 0.5);
  EXPECT_FALSE(seen.free_ms);
}

}  // namespace
}  // namespace myxtts
