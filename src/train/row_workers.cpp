#include "train/row_workers.h"

#include <algorithm>
#include <utility>

#include <ATen/Parallel.h>

namespace myxtts {

RowWorkers::RowWorkers(size_t cores) {
  constexpr size_t most = 8;  // a batch has few rows
  const size_t count = std::min(cores, most);
  const auto cores_each = static_cast<int>(cores / count);
  const int before = at::get_num_threads();
  left_ = count;
  for (size_t i = 0; i < count; ++i) threads_.emplace_back([this, i, cores_each] { work(i, cores_each); });
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return left_ == 0; });
  at::set_num_threads(before);  // of this thread: each worker has set its own
}

RowWorkers::~RowWorkers() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  begun_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void RowWorkers::work(size_t number, int cores) {
  at::set_num_threads(cores);
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  if (--left_ == 0) done_.notify_one();
  while (true) {
    begun_.wait(lock, [&] { return stop_ || round_ != seen; });
    if (stop_) return;
    seen = round_;
    if (number >= parts_) continue;
    lock.unlock();
    std::exception_ptr error;
    try {
      (*body_)(number);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !error_) error_ = error;
    if (--left_ == 0) done_.notify_one();
  }
}

void RowWorkers::run(size_t parts, const std::function<void(size_t)>& body) {
  std::unique_lock lock(mutex_);
  body_ = &body, parts_ = left_ = parts, ++round_;
  begun_.notify_all();
  done_.wait(lock, [&] { return left_ == 0; });
  body_ = nullptr;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace myxtts
