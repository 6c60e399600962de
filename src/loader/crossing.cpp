#include "loader/crossing.h"

#include "base/bounded_queue.h"
#include "base/clock.h"
#include "base/error.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace myxtts {

struct Crossing::State {
  State(std::unique_ptr<BatchSource> loader_, std::unique_ptr<CrossingLink> link_, const CrossingOptions& options_)
      : loader(std::move(loader_)),
        link(std::move(link_)),
        options(options_),
        batches(options.places),
        free(options.places),
        ready(options.places) {
    for (size_t i = 0; i < options.places; ++i) free.push(i);
    thread = std::thread([this] {
      relax_stream_capture();
      try {
        carry_batches();
        end(nullptr);
      } catch (...) {
        end(std::current_exception());
      }
    });
  }

  ~State() { join(); }

  void join() {
    stop();
    if (thread.joinable()) thread.join();
  }

  void stop() {
    free.close();
    loader->stop();
    end(nullptr);
  }

  // The consumer gets the error after the batches that were carried before it.
  void end(const std::exception_ptr& error) {
    ready.close(error);
    const std::lock_guard lock(mutex);
    ended = true;
    changed.notify_all();
  }

  void give_back(size_t place, StreamHandle consumer) noexcept {
    try {
      link->give_back(place, consumer);
    } catch (...) {
      end(std::current_exception());
    }
    --leased;
    free.push(place);
  }

  void carry_batches() {
    for (;;) {
      const std::optional<size_t> place = free.pop();
      if (!place) return;
      const BatchLease from = loader->next(link->stream());
      Batch& to = batches[*place];
      to = *from;
      place_arrays(to, link->place(*place), options.model_device);
      link->carry(*place, *from, to);
      if (!ready.push(*place)) return;
      const std::lock_guard lock(mutex);
      ++carried;
      changed.notify_all();
    }
  }

  // Until the delay is over and every place is filled, but no longer than `until`. True once it has started.
  bool wait_for_start(std::chrono::steady_clock::time_point until) {
    if (started) return true;
    const int64_t start_ns = now_ns();
    std::unique_lock lock(mutex);
    changed.wait_until(lock, std::min(until, may_start), [&] { return ended; });
    const bool filled = changed.wait_until(lock, until, [&] { return ended || carried >= options.places; });
    started = ended || (filled && std::chrono::steady_clock::now() >= may_start);
    start_waited_ns += now_ns() - start_ns;
    return started;
  }

  void check_leases() const {
    if (leased < options.places) return;
    fail("loader", "all {} batches on the model's GPU are held", options.places, way_out("let go of one"));
  }

  // The link goes first: it waits for copies that still read the loader's memory.
  const std::unique_ptr<BatchSource> loader;
  const std::unique_ptr<CrossingLink> link;
  const CrossingOptions options;
  const std::chrono::steady_clock::time_point may_start =
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(options.start_delay_s));
  std::vector<Batch> batches;  // per place
  BoundedQueue<size_t> free, ready;
  std::atomic<size_t> leased = 0;
  bool started = false;
  int64_t start_waited_ns = 0;
  uint64_t taken = 0;
  double seconds_of_audio = 0;
  std::mutex mutex;
  std::condition_variable changed;
  size_t carried = 0;
  bool ended = false;
  std::thread thread;
};

Crossing::Crossing(std::unique_ptr<BatchSource> loader, std::unique_ptr<CrossingLink> link,
                   const CrossingOptions& options)
    : state_(std::make_shared<State>(std::move(loader), std::move(link), options)) {}

Crossing::~Crossing() { state_->join(); }

BatchLease Crossing::next(StreamHandle consumer) {
  State& state = *state_;
  while (!state.wait_for_start(std::chrono::steady_clock::now() + std::chrono::hours(1))) {
  }
  state.check_leases();
  const std::optional<size_t> place = state.ready.pop();
  if (!place) fail_as(ErrorCode::stopped, "loader", "it was stopped");
  state.link->take(*place, consumer);
  ++state.taken, ++state.leased;
  state.seconds_of_audio += state.batches[*place].seconds;
  return {&state.batches[*place],
          [shared = state_, number = *place, consumer](const Batch*) { shared->give_back(number, consumer); }};
}

bool Crossing::wait(std::chrono::milliseconds most) {
  State& state = *state_;
  const auto until = std::chrono::steady_clock::now() + most;
  if (!state.wait_for_start(until)) return false;
  state.check_leases();
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
  return state.ready.wait_for(std::max(left, std::chrono::milliseconds(0)));
}

LoaderStats Crossing::stats() const {
  LoaderStats stats = state_->loader->stats();
  stats.batches = state_->taken, stats.seconds_of_audio = state_->seconds_of_audio;
  stats.consumer_waits_s = static_cast<double>(state_->ready.stats().pop_wait_ns + state_->start_waited_ns) * 1e-9;
  return stats;
}

void Crossing::stop() { state_->stop(); }

}  // namespace myxtts
