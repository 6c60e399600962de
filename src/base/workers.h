// Threads that run one function each and pass its error to whoever joins them.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace myxtts {

class Workers {
 public:
  // Starts `count` threads that run `body(worker_index)`, or fewer if the system refuses. If one throws, calls
  // `on_error` once from that thread, to close queues; the other threads should then return.
  Workers(size_t count, const std::function<void(size_t)>& body,
          const std::function<void(std::exception_ptr)>& on_error = {});
  ~Workers();  // joins; drops an error that was not collected
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Joins all threads, then throws the first error.
  void join();

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

// Calls `body(i)` for every i in [0, count) on `threads` threads; throws the first error after all have stopped.
// Items are assigned in order, one at a time. The caller is one of the threads.
void parallel_for(size_t count, size_t threads, const std::function<void(size_t)>& body);

// CPU cores that this process may use.
size_t available_cores();

}  // namespace myxtts
