#include "loader/loader.h"

#include "base/bounded_queue.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/work_clock.h"
#include "loader/backend.h"
#include "loader/depth_tuner.h"
#include "loader/gate.h"
#include "loader/slow_loader.h"
#include "loader/worker_tuner.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace myxtts {
namespace {

// Seconds that many threads add up.
class TimeSum {
 public:
  void add(int64_t ns) { sum_ns_.fetch_add(ns, std::memory_order_relaxed); }
  void add_since(int64_t start_ns) { add(now_ns() - start_ns); }
  double seconds() const { return static_cast<double>(sum_ns_.load(std::memory_order_relaxed)) * 1e-9; }

 private:
  std::atomic<int64_t> sum_ns_ = 0;
};

// Rows of the batches that were begun, handed out in order.
class RowDispenser {
 public:
  struct Row {
    LoaderSlot* slot = nullptr;  // null: no more
    size_t row = 0;
  };

  void add(LoaderSlot& slot, std::vector<size_t> rows) {
    const std::lock_guard lock(mutex_);
    open_.push_back({&slot, std::move(rows)});
    changed_.notify_all();  // one alone might be a worker that rests
  }

  // Workers from `active` on rest.
  Row take(size_t worker) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || (worker < active_ && !open_.empty()); });
    if (stopped_) return {};
    Open& first = open_.front();
    const Row row{first.slot, first.rows[first.next++]};
    if (first.next == first.rows.size()) open_.pop_front();
    return row;
  }

  void set_active(size_t workers) {
    const std::lock_guard lock(mutex_);
    active_ = workers;
    changed_.notify_all();
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

 private:
  struct Open {
    LoaderSlot* slot;
    std::vector<size_t> rows;
    size_t next = 0;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Open> open_;
  size_t active_ = 0;
  bool stopped_ = false;
};

// Every shape's batch must split evenly: found out now, not in the middle of an epoch.
void check_ranks(const BatchPlan& plan, const LoaderOptions& options) {
  const auto world_size = static_cast<int64_t>(options.world_size);
  for (const Shape& shape : plan.shapes()) {
    if (world_size >= 1 && options.rank < options.world_size && shape.batch_size % world_size == 0) continue;
    reject_input("loader", "rank {} of {} has no equal share in batches of {}", options.rank, world_size,
                 shape.batch_size);
  }
}

}  // namespace

struct Loader::State {
  State(const Corpus& corpus_, const BatchPlan& plan_, const LoaderOptions& options_,
        std::unique_ptr<LoaderBackend> backend_)
      : corpus(corpus_),
        plan(plan_),
        options(options_),
        builder(corpus, plan, options.arrays, options.world_size, options.rank),
        backend(std::move(backend_)),
        reading(options_.reading_batches),
        tuning(options_),
        active_workers(options_.workers),
        ring_batches(options_.ring_batches),
        reading_batches(options_.reading_batches),
        free_slots(options_.ring_batches),
        begun(options_.ring_batches),
        ready(options_.ring_batches),
        slots(options_.ring_batches) {
    for (size_t i = 0; i < slots.size(); ++i) slots[i].number = i, free_slots.push(&slots[i]);
    try {
      start([this] { plan_batches(); });
      rows.set_active(options.workers);
      for (size_t i = 0; i < options.workers; ++i) start([this, i] { make_rows(i); });
      start([this] { finish_batches(); });
    } catch (const std::system_error& error) {
      end();
      fail("loader", "{} threads cannot be started ({})", options.workers + 2, error.what(),
           way_out("set data.num_workers lower"));
    }
  }

  template <typename Stage>
  void start(const Stage& stage) {
    threads.emplace_back([this, stage] {
      relax_stream_capture();
      guarded(stage);
    });
  }

  void end() {
    stop(nullptr);
    for (std::thread& thread : threads) thread.join();
    threads.clear();
  }

  ~State() { end(); }

  // An error ends every stage; the consumer gets it after the batches that were ready before.
  void stop(const std::exception_ptr& error) {
    ready.close(error);  // first, so that no other error is seen instead
    stopped = true;
    for (LoaderSlot& slot : slots) slot.rows_left = 0, slot.rows_left.notify_all();
    backend->stop();
    rows.stop();
    reading.stop();
    free_slots.close();
    begun.close();
  }

  template <typename Stage>
  void guarded(const Stage& stage) {
    try {
      stage();
    } catch (...) {
      stop(std::current_exception());
    }
  }

  // Errors name the batch and its clips, whichever stage they come from.
  template <typename Work>
  auto naming(const LoaderSlot& slot, std::span<const uint32_t> clips, const Work& work) {
    try {
      return work();
    } catch (const std::exception& error) {
      const auto* const known = dynamic_cast<const Error*>(&error);
      std::string names;
      for (const uint32_t clip : clips) {
        if (clip == no_clip || names.size() > 200) continue;
        names += fmt::format("{}{}", names.empty() ? "" : ", ", corpus.clip(clip).id);
      }
      fail_as(known != nullptr ? known->code() : ErrorCode::failed, "loader", "batch {} of epoch {} ({}): {}",
              slot.batch.index, slot.batch.epoch, names, error.what());
    }
  }

  void plan_batches() {
    uint64_t epoch = options.epoch, index = options.index;
    for (uint64_t sequence = 0;; ++sequence) {
      const std::optional<LoaderSlot*> free = free_slots.pop();
      if (!free || !reading.enter()) return;
      LoaderSlot& slot = **free;
      if (index >= plan.batches_per_epoch()) index = 0, ++epoch;
      slot.sequence = sequence;
      slot.planned = plan.batch(epoch, index, options.rank, options.world_size);
      const size_t size = slot.planned.clips.size();
      Batch& batch = slot.batch;
      batch.epoch = epoch, batch.index = index++;
      builder.declare(batch, slot.planned.shape);
      batch.clips = slot.planned.clips;
      batch.lengths.assign(size, {});
      batch.replaced.clear();
      slot.bad.assign(size, {});
      const int64_t start_ns = now_ns();
      batch.times = {};
      batch.times.planned_ns = start_ns;
      slot.first_row_ns = slot.rows_done_ns = slot.read_ns = slot.decode_ns = slot.features_ns = 0;
      slot.bytes_read = 0;
      std::vector<size_t> needed;
      try {
        needed = naming(slot, slot.planned.clips, [&] { return backend->begin(slot); });
      } catch (...) {  // it travels with the batch, behind those that are being read
        slot.failed = true, slot.error = std::current_exception();
      }
      begin_busy.add_since(start_ns);
      slot.rows_left = needed.size();
      if (!begun.push(&slot) || slot.failed) return;
      if (!needed.empty()) rows.add(slot, std::move(needed));
    }
  }

  void make_rows(size_t worker) {
    for (;;) {
      const int64_t waiting_ns = now_ns();
      const RowDispenser::Row row = rows.take(worker);
      if (row.slot == nullptr) return;
      rows_waited.add_since(waiting_ns);
      const int64_t start_ns = now_ns();
      int64_t none = 0;
      row.slot->first_row_ns.compare_exchange_strong(none, start_ns);
      const WorkClock before = WorkClock::of_this_thread();
      try {
        const uint64_t bytes = naming(*row.slot, std::span(row.slot->planned.clips).subspan(row.row, 1),
                                      [&] { return backend->make_row(*row.slot, row.row); });
        bytes_read.fetch_add(bytes, std::memory_order_relaxed);
        row.slot->bytes_read.fetch_add(bytes, std::memory_order_relaxed);
      } catch (...) {
        if (!row.slot->failed.exchange(true)) row.slot->error = std::current_exception();
      }
      note_row(*row.slot, start_ns, before);
      if (row.slot->rows_left.fetch_sub(1) == 1) row.slot->rows_left.notify_one();
    }
  }

  void note_row(LoaderSlot& slot, int64_t start_ns, const WorkClock& before) {
    const int64_t end_ns = now_ns();
    const int64_t read_ns = WorkClock::of_this_thread().reading_ns - before.reading_ns;
    const int64_t features_ns = WorkClock::of_this_thread().features_ns - before.features_ns;
    rows_busy.add(end_ns - start_ns), rows_read.add(read_ns), rows_features.add(features_ns);
    slot.read_ns.fetch_add(read_ns, std::memory_order_relaxed);
    slot.features_ns.fetch_add(features_ns, std::memory_order_relaxed);
    slot.decode_ns.fetch_add(end_ns - start_ns - read_ns - features_ns, std::memory_order_relaxed);
    int64_t latest = slot.rows_done_ns;
    while (latest < end_ns && !slot.rows_done_ns.compare_exchange_weak(latest, end_ns)) {
    }
  }

  void finish_batches() {
    for (;;) {
      const std::optional<LoaderSlot*> next = begun.pop();
      if (!next) return;
      LoaderSlot& slot = **next;
      const int64_t start_ns = now_ns();
      for (size_t left = slot.rows_left; left != 0 && !stopped; left = slot.rows_left) slot.rows_left.wait(left);
      if (stopped) return;
      finish_waited.add_since(start_ns);
      if (slot.failed) std::rethrow_exception(slot.error);
      Batch& batch = slot.batch;
      const int64_t finish_ns = now_ns();
      naming(slot, slot.planned.clips, [&] { backend->finish(slot); });
      reading.leave();
      finish_busy.add_since(finish_ns);
      for (std::vector<BadClip>& bad : slot.bad) batch.replaced.insert(batch.replaced.end(), bad.begin(), bad.end());
      batch.seconds = 0;
      for (const RowLength& row : batch.lengths) batch.seconds += row.seconds;
      note_times(slot, finish_ns);
      if (!ready.push(&slot)) return;
    }
  }

  // Rows that were all in a cache took no time.
  static void note_times(LoaderSlot& slot, int64_t finish_ns) {
    BatchTimes& times = slot.batch.times;
    times.rows_done_ns = slot.rows_done_ns > 0 ? slot.rows_done_ns.load() : finish_ns;
    times.reading_ns = slot.first_row_ns > 0 ? slot.first_row_ns.load() : times.rows_done_ns;
    times.finished_ns = now_ns();
    times.read_s = static_cast<double>(slot.read_ns) * 1e-9;
    times.decode_s = static_cast<double>(slot.decode_ns) * 1e-9;
    times.features_s = static_cast<double>(slot.features_ns) * 1e-9;
    times.bytes_read = slot.bytes_read;
  }

  static BatchLease lease(const std::shared_ptr<State>& state, LoaderSlot& slot, StreamHandle consumer) {
    {
      const std::lock_guard lock(state->leases);
      ++state->leased;
    }
    return {&slot.batch, [state, &slot, consumer](const Batch*) { state->give_back(slot, consumer); }};
  }

  // The last holder of a lease has let go. Any thread.
  void give_back(LoaderSlot& slot, StreamHandle consumer) noexcept {
    guarded([&] { backend->give_back(slot, consumer); });
    const std::lock_guard lock(leases);
    --leased;
    if (circulating > ring_batches) {
      resting.push_back(&slot), --circulating;
    } else {
      free_slots.push(&slot);
    }
  }

  // With every place leased no batch could ever become ready: one that rests is used again first.
  void check_leases() {
    const std::lock_guard lock(leases);
    if (leased < circulating) return;
    if (!resting.empty()) return use_resting();
    fail("loader", "all {} batches of the ring are held", leased,
         way_out("let go of one, or set data.pipeline_buffer_size higher"));
  }

  void set_ring_batches(size_t wanted) {
    const std::lock_guard lock(leases);
    ring_batches = wanted;
    while (circulating < wanted && !resting.empty()) use_resting();
  }

  void use_resting() {
    free_slots.push(resting.back());
    resting.pop_back();
    ++circulating;
  }

  // The consumer's thread.
  void tune(const LoaderStats& stats) {
    const double now_s = static_cast<double>(now_ns()) * 1e-9;
    const auto say = [&](const std::string& reason) {
      if (options.say) options.say(reason);
    };
    if (const auto change = tuning.workers.update(stats, now_s); change.workers > 0) {
      rows.set_active(active_workers = change.workers);
      say(change.reason);
    }
    if (const auto change = tuning.ring.update(stats, stats.plan_waits_for_room_s, ready.size(), now_s);
        change.batches > 0) {
      set_ring_batches(change.batches);
      say(change.reason);
    }
    if (const auto change = tuning.reading.update(stats, stats.plan_waits_for_reading_s, reading.room(), now_s);
        change.batches > 0) {
      reading.set_limit(reading_batches = change.batches);
      say(change.reason);
    }
  }

  struct Tuning {
    explicit Tuning(const LoaderOptions& options)
        : workers(std::clamp<size_t>(options.min_workers, 1, options.workers), options.workers),
          ring("batches in the ring", std::min(options.min_ring_batches, options.ring_batches), options.ring_batches,
               options.ring_batches),
          reading("batches read at a time", std::min(options.min_reading_batches, options.reading_batches),
                  std::max(options.max_reading_batches, options.reading_batches), options.reading_batches) {}
    WorkerTuner workers;
    DepthTuner ring, reading;
  };

  const Corpus& corpus;
  const BatchPlan& plan;
  const LoaderOptions options;
  const RowBuilder builder;
  const std::unique_ptr<LoaderBackend> backend;
  RowDispenser rows;
  Gate reading;
  Tuning tuning;
  std::atomic<size_t> active_workers, ring_batches, reading_batches;
  std::mutex leases;                          // guards the next three
  size_t circulating = options.ring_batches;  // places of the ring in use; the others rest
  size_t leased = 0;
  std::vector<LoaderSlot*> resting;
  BoundedQueue<LoaderSlot*> free_slots, begun, ready;
  std::vector<LoaderSlot> slots;
  std::atomic<bool> stopped = false;
  TimeSum rows_busy, rows_read, rows_features, rows_waited, begin_busy, finish_waited, finish_busy;
  std::atomic<uint64_t> bytes_read = 0;
  std::atomic<uint64_t> batches = 0;
  std::atomic<double> seconds_of_audio = 0;
  std::vector<std::thread> threads;
};

namespace {

std::unique_ptr<LoaderBackend> make_backend(const Corpus& corpus, const BatchPlan& plan, const LoaderOptions& options) {
  if (plan.batches_per_epoch() == 0) reject_input("loader", "the corpus has too few clips for a batch");
  check_ranks(plan, options);
  return options.device < 0 ? make_cpu_backend(corpus, plan, options) : make_gpu_backend(corpus, plan, options);
}

}  // namespace

Loader::Loader(const Corpus& corpus, const BatchPlan& plan, const LoaderOptions& options)
    : Loader(corpus, plan, options, make_backend(corpus, plan, options)) {}

Loader::Loader(const Corpus& corpus, const BatchPlan& plan, const LoaderOptions& options,
               std::unique_ptr<LoaderBackend> backend)
    : state_(std::make_shared<State>(corpus, plan, options, std::move(backend))) {}

Loader::~Loader() { state_->end(); }

BatchLease Loader::next(StreamHandle consumer) {
  State& state = *state_;
  state.check_leases();
  const std::optional<LoaderSlot*> slot = state.ready.pop();
  if (!slot) fail_as(ErrorCode::stopped, "loader", "it was stopped");
  state.backend->take(**slot, consumer);
  ++state.batches;
  state.seconds_of_audio = state.seconds_of_audio + (*slot)->batch.seconds;
  if (state.options.tune) state.tune(stats());
  return state.lease(state_, **slot, consumer);
}

bool Loader::wait(std::chrono::milliseconds most) {
  state_->check_leases();
  return state_->ready.wait_for(most);
}

void Loader::stop() { state_->stop(nullptr); }

LoaderStats Loader::stats() const {
  LoaderStats stats;
  stats.batches = state_->batches, stats.seconds_of_audio = state_->seconds_of_audio;
  stats.bytes_read = state_->bytes_read;
  stats.active_workers = state_->active_workers, stats.ring_batches = state_->ring_batches;
  stats.reading_batches = state_->reading_batches;
  stats.plan_waits_for_reading_s = state_->reading.waited_s();
  stats.rows_busy_s = state_->rows_busy.seconds(), stats.rows_wait_s = state_->rows_waited.seconds();
  stats.read_s = state_->rows_read.seconds(), stats.features_s = state_->rows_features.seconds();
  stats.ready_batches = state_->ready.size();
  stats.begin_busy_s = state_->begin_busy.seconds(), stats.finish_busy_s = state_->finish_busy.seconds();
  stats.plan_waits_for_room_s = static_cast<double>(state_->free_slots.stats().pop_wait_ns) * 1e-9;
  stats.finish_waits_for_rows_s = state_->finish_waited.seconds();
  stats.consumer_waits_s = static_cast<double>(state_->ready.stats().pop_wait_ns) * 1e-9;
  return stats;
}

std::unique_ptr<BatchSource> open_loader(const Corpus& corpus, const BatchPlan& plan, const LoaderOptions& options) {
  if (options.native) return std::make_unique<Loader>(corpus, plan, options);
  return std::make_unique<SlowLoader>(corpus, plan, options);
}

}  // namespace myxtts
