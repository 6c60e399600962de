// Bounded blocking queue between two stages. Can be closed, passes a producer error to the consumer, and measures how
// long each side waits. Many producers, many consumers.
#pragma once

#include "base/clock.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>

namespace myxtts {

struct QueueStats {
  uint64_t pushed = 0;
  uint64_t popped = 0;
  int64_t push_wait_ns = 0;    // producers blocked: the next stage is slower
  int64_t pop_wait_ns = 0;     // consumers blocked: the previous stage is slower
  uint64_t occupancy_sum = 0;  // items found at each pop, for the mean
  uint64_t high_water = 0;

  double mean_occupancy() const {
    return popped == 0 ? 0.0 : static_cast<double>(occupancy_sum) / static_cast<double>(popped);
  }
};

template <typename Item>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  // Blocks while full. Returns false, without taking the item, if the queue is closed.
  bool push(Item item) {
    std::unique_lock lock(mutex_);
    wait(lock, room_, stats_.push_wait_ns, [&] { return closed_ || items_.size() < capacity_; });
    if (closed_) return false;
    items_.push_back(std::move(item));
    ++stats_.pushed;
    stats_.high_water = std::max<uint64_t>(stats_.high_water, items_.size());
    filled_.notify_one();
    return true;
  }

  // Blocks while empty. Returns nothing if the queue is closed and drained, or throws the error it was closed with.
  std::optional<Item> pop() {
    std::unique_lock lock(mutex_);
    wait(lock, filled_, stats_.pop_wait_ns, [&] { return closed_ || !items_.empty(); });
    if (items_.empty()) {
      if (error_) std::rethrow_exception(error_);
      return std::nullopt;
    }
    stats_.occupancy_sum += items_.size();
    ++stats_.popped;
    std::optional<Item> item(std::move(items_.front()));
    items_.pop_front();
    room_.notify_one();
    return item;
  }

  // Waits at most so long for an item. True if pop() would not block.
  bool wait_for(std::chrono::milliseconds most) {
    std::unique_lock lock(mutex_);
    const auto ready = [&] { return closed_ || !items_.empty(); };
    if (ready()) return true;
    const int64_t start_ns = now_ns();
    const bool come = filled_.wait_for(lock, most, ready);
    stats_.pop_wait_ns += now_ns() - start_ns;
    return come;
  }

  // Ends pushing; remaining items may still be popped. Keeps the first error.
  void close(std::exception_ptr error = nullptr) {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    if (error && !error_) error_ = std::move(error);
    room_.notify_all();
    filled_.notify_all();
  }

  size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }

  QueueStats stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  template <typename Ready>
  static void wait(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, int64_t& waited_ns,
                   Ready ready) {
    if (ready()) return;
    const int64_t start_ns = now_ns();
    changed.wait(lock, ready);
    waited_ns += now_ns() - start_ns;
  }

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable room_;
  std::condition_variable filled_;
  std::deque<Item> items_;
  QueueStats stats_;
  std::exception_ptr error_;
  bool closed_ = false;
};

}  // namespace myxtts
