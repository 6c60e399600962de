// Threads that run one function each and carry its error to whoever waits for them.
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
  // Starts `count` threads running `body(worker_number)`, or as many as the system gives. When one throws, `on_error`
  // is called once, from that thread, so that queues can be closed with the error; the others are expected to notice
  // and return.
  Workers(size_t count, const std::function<void(size_t)>& body,
          const std::function<void(std::exception_ptr)>& on_error = {});
  ~Workers();  // joins; an error nobody asked for is dropped
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Waits for all of them, then throws the first error.
  void join();

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

// Calls `body(i)` for every i in [0, count) on `threads` threads; throws the first error after all have stopped.
// The items are handed out in order, one at a time. One thread is the caller's own.
void parallel_for(size_t count, size_t threads, const std::function<void(size_t)>& body);

// The cores this process may use.
size_t available_cores();

}  // namespace myxtts
