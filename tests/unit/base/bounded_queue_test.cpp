#include "base/bounded_queue.h"

#include "base/workers.h"

#include <numeric>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

namespace myxtts {
namespace {

TEST(BoundedQueue, hands_every_item_to_exactly_one_consumer) {
  constexpr int producers = 3, each = 2000;
  BoundedQueue<int> queue(4);
  std::atomic<int64_t> sum = 0;
  std::atomic<int> count = 0;
  Workers consumers(3, [&](size_t) {
    while (const auto item = queue.pop()) sum += *item, ++count;
  });
  Workers feeders(producers, [&](size_t worker) {
    for (int i = 0; i < each; ++i) ASSERT_TRUE(queue.push(static_cast<int>(worker) * each + i));
  });
  feeders.join();
  queue.close();
  consumers.join();
  const int64_t total = producers * each;
  EXPECT_EQ(count, total);
  EXPECT_EQ(sum, total * (total - 1) / 2);
  EXPECT_LE(queue.stats().high_water, 4U);
  EXPECT_EQ(queue.stats().popped, static_cast<uint64_t>(total));
}

TEST(BoundedQueue, what_was_pushed_before_close_can_still_be_popped) {
  BoundedQueue<int> queue(2);
  queue.push(7);
  queue.close();
  EXPECT_FALSE(queue.push(8));
  EXPECT_EQ(queue.pop(), 7);
  EXPECT_EQ(queue.pop(), std::nullopt);
}

TEST(BoundedQueue, a_producers_error_is_raised_at_the_consumer_after_the_good_items) {
  BoundedQueue<int> queue(2);
  queue.push(1);
  queue.close(std::make_exception_ptr(std::runtime_error("clip 17")));
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_THROW(queue.pop(), std::runtime_error);
}

TEST(BoundedQueue, closing_wakes_a_blocked_producer) {
  BoundedQueue<int> queue(1);
  queue.push(1);
  bool taken = true;
  std::thread producer([&] { taken = queue.push(2); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  queue.close();
  producer.join();
  EXPECT_FALSE(taken);
}

TEST(BoundedQueue, knows_which_side_waited) {
  BoundedQueue<int> queue(1);
  // On a loaded machine the producer may come first, so that nobody waits: then once more.
  for (int i = 0; i < 10'000 && queue.stats().pop_wait_ns == 0; ++i) {
    std::thread producer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      queue.push(1);
    });
    queue.pop();
    producer.join();
  }
  EXPECT_GT(queue.stats().pop_wait_ns, 0);
  EXPECT_EQ(queue.stats().push_wait_ns, 0);
}

}  // namespace
}  // namespace myxtts
