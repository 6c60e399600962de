#include "base/workers.h"

#include <algorithm>
#include <system_error>

#include <sched.h>

namespace myxtts {

Workers::Workers(size_t count, const std::function<void(size_t)>& body,
                 const std::function<void(std::exception_ptr)>& on_error) {
  threads_.reserve(count);
  const auto run = [this, body, on_error](size_t worker) {
    try {
      body(worker);
    } catch (...) {
      {
        const std::lock_guard lock(mutex_);
        if (error_) return;
        error_ = std::current_exception();
      }
      if (on_error) on_error(std::current_exception());
    }
  };
  for (size_t worker = 0; worker < count; ++worker) {
    try {
      threads_.emplace_back(run, worker);
    } catch (const std::system_error&) {
      if (worker == 0) throw;
      return;  // no more threads available: continue with those that run
    }
  }
}

Workers::~Workers() {
  for (std::thread& thread : threads_) thread.join();
}

void Workers::join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  if (error_) std::rethrow_exception(error_);
}

void parallel_for(size_t count, size_t threads, const std::function<void(size_t)>& body) {
  if (threads <= 1) {
    for (size_t i = 0; i < count; ++i) body(i);
    return;
  }
  std::atomic<size_t> next = 0;
  std::atomic<bool> stopped = false;
  Workers workers(
      std::min(count, std::max<size_t>(threads, 1)),
      [&](size_t) {
        for (size_t i = next++; i < count && !stopped; i = next++) body(i);
      },
      [&](const std::exception_ptr&) { stopped = true; });
  workers.join();
}

size_t available_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return std::max(1U, std::thread::hardware_concurrency());
  return static_cast<size_t>(std::max(1, CPU_COUNT(&cores)));
}

}  // namespace myxtts
