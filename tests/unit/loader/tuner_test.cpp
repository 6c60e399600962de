#include "loader/depth_tuner.h"
#include "loader/worker_tuner.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {

// Stats after so many batches, with workers busy and the consumer waiting for these shares of the time.
TEST(WorkerTuner, rests_workers_that_are_idle_and_wakes_them_when_the_consumer_waits) {
  WorkerTuner tuner(2, 16);
  LoaderStats stats;
  double now_s = 100;
  size_t active = 16;
  const auto pass = [&](double busy, double waiting) {
    stats.batches += WorkerTuner::batches_between, now_s += 1;
    stats.rows_busy_s += busy * static_cast<double>(active), stats.consumer_waits_s += waiting;
    const WorkerTuner::Change change = tuner.update(stats, now_s);
    if (change.workers > 0) active = change.workers;
    return change;
  };
  EXPECT_EQ(tuner.update(stats, now_s).workers, 0U);  // nothing is known yet
  EXPECT_EQ(pass(0.5, 0.0).workers, 0U);              // as it should be
  EXPECT_EQ(pass(0.25, 0.0).workers, 7U);
  EXPECT_EQ(pass(0.99, 0.0).workers, 0U);  // busy, but nobody waits
  EXPECT_EQ(pass(0.1, 0.5).workers, 0U);   // somebody waits, but not for the workers
  const WorkerTuner::Change more = pass(0.95, 0.2);
  EXPECT_EQ(more.workers, 10U);
  EXPECT_EQ(more.reason, "10 workers instead of 7: they were busy 95 % of the time, the consumer waited 20.0 %");
  EXPECT_EQ(pass(0.95, 0.2).workers, 15U);
  EXPECT_EQ(pass(0.95, 0.2).workers, 16U);
  EXPECT_EQ(pass(0.95, 0.2).workers, 0U);  // there are no more
  EXPECT_EQ(pass(0.001, 0.0).workers, 2U);
  stats.batches += 1;
  EXPECT_EQ(tuner.update(stats, now_s + 9).workers, 0U);  // too soon
}

TEST(DepthTuner, takes_more_when_loading_is_held_up_and_less_when_they_are_never_in_use) {
  DepthTuner tuner("batches in the ring", 4, 40, 40);
  LoaderStats stats;
  double now_s = 100, held_up_s = 0;
  const auto pass = [&](double held_up, double waiting, size_t unused) {
    stats.batches += DepthTuner::batches_between, now_s += 1, held_up_s += held_up;
    stats.consumer_waits_s += waiting;
    return tuner.update(stats, held_up_s, unused, now_s);
  };
  EXPECT_EQ(tuner.update(stats, 0, 40, now_s).batches, 0U);  // nothing is known yet
  EXPECT_EQ(pass(1.0, 0.0, 10).batches, 0U);                 // three quarters are in use at times
  const DepthTuner::Change fewer = pass(1.0, 0.0, 36);
  EXPECT_EQ(fewer.batches, 22U);
  EXPECT_EQ(fewer.reason, "22 batches in the ring instead of 40: 36 were never in use, the consumer waited 0.0 %");
  EXPECT_EQ(pass(1.0, 0.005, 20).batches, 0U);  // it waits a little: as it is
  EXPECT_EQ(pass(0.0, 0.5, 0).batches, 0U);     // it waits, but not because there are too few
  const DepthTuner::Change more = pass(0.3, 0.2, 0);
  EXPECT_EQ(more.batches, 33U);
  EXPECT_EQ(more.reason,
            "33 batches in the ring instead of 22: loading was held up 30 % of the time, the consumer waited 20.0 %");
  EXPECT_EQ(pass(0.3, 0.2, 0).batches, 40U);
  EXPECT_EQ(pass(0.3, 0.2, 0).batches, 0U);  // there are no more
  for (int i = 0; i < 10; ++i) pass(1.0, 0.0, 39);
  EXPECT_EQ(pass(1.0, 0.0, 39).batches, 0U);  // at the least
  stats.batches += 1;
  EXPECT_EQ(tuner.update(stats, held_up_s, 0, now_s + 9).batches, 0U);  // too soon
  EXPECT_EQ(pass(1.0, 0.0, 39).batches, 0U);                            // what it saw then counts
}

TEST(DepthTuner, leaves_alone_what_was_set_by_hand) {
  DepthTuner tuner("batches read at a time", 8, 8, 8);
  LoaderStats stats;
  for (int i = 0; i < 10; ++i) {
    stats.batches += DepthTuner::batches_between;
    EXPECT_EQ(tuner.update(stats, 0, 8, i).batches, 0U);
  }
}

}  // namespace
}  // namespace myxtts
