// Threads that each compute a part of a batch's rows on a CPU. Parallel over rows instead of inside operations: threads
// meet once per step, not at every operation, so that a busy machine slows a step down no more than its share. Threads
// sleep while they wait. One thread calls.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace myxtts {

class RowWorkers {
 public:
  // As many as `cores`, up to a limit; each has its share of the cores for libtorch's operations.
  explicit RowWorkers(size_t cores);
  ~RowWorkers();
  RowWorkers(const RowWorkers&) = delete;
  RowWorkers& operator=(const RowWorkers&) = delete;

  size_t size() const { return threads_.size(); }

  // Calls `body(i)` for i in [0, parts), each on a thread of its own; waits for all of them, and throws the first
  // error. `parts` is at most size().
  void run(size_t parts, const std::function<void(size_t)>& body);

 private:
  void work(size_t number, int cores);

  std::mutex mutex_;
  std::condition_variable begun_, done_;
  const std::function<void(size_t)>* body_ = nullptr;
  size_t parts_ = 0, left_ = 0;  // threads that have not finished yet
  uint64_t round_ = 0;
  bool stop_ = false;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

}  // namespace myxtts
