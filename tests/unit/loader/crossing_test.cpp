#include "loader/crossing.h"

#include "base/clock.h"
#include "base/error.h"
#include "tiny_corpus.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

namespace myxtts {
namespace {

// Two devices in host memory. Copies are done later, in order, by a thread that is the data device's stream; what the
// consumer sees before it waited, or after it gave a place back, is rubbish.
class FakeLink : public CrossingLink {
 public:
  FakeLink(const CrossingOptions& options, size_t place_bytes, std::chrono::milliseconds copy_time)
      : place_bytes_(place_bytes),
        memory_(options.places * place_bytes),
        places_(options.places),
        copy_time_(copy_time) {
    device_ = std::thread([this] { run(); });
  }
  ~FakeLink() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    device_.join();
  }

  StreamHandle stream() override { return nullptr; }
  std::byte* place(size_t number) override { return memory_.data() + number * place_bytes_; }

  void carry(size_t number, const Batch& from, const Batch& to) override {
    std::unique_lock lock(mutex_);
    EXPECT_FALSE(places_[number].in_use) << "carried to a place that the consumer has";
    EXPECT_FALSE(places_[number].arrived) << "carried to a place that nobody has taken";
    ++carried_;
    queue_.push_back({number, from, to});
    changed_.notify_all();
    // The loader may write to `from` again only after this, as it would behind the stream.
    changed_.wait(lock, [&] { return ended_ || queue_.empty(); });
  }
  void take(size_t number, StreamHandle) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return places_[number].arrived; });
    places_[number].in_use = true;
  }
  void give_back(size_t number, StreamHandle) override {
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(places_[number].in_use);
    places_[number] = {};
    std::memset(place(number), 0xEE, place_bytes_);
  }

  bool is_here(const void* address) const {
    return address >= memory_.data() && address < memory_.data() + memory_.size();
  }
  size_t carried() const {
    const std::lock_guard lock(mutex_);
    return carried_;
  }

 private:
  struct Place {
    bool arrived = false, in_use = false;
  };
  struct Copy {
    size_t number;
    Batch from, to;
  };

  void run() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ended_ || !queue_.empty(); });
      if (ended_) return;
      lock.unlock();
      std::this_thread::sleep_for(copy_time_);
      lock.lock();
      const Copy copy = queue_.front();
      for (size_t i = 0; i < copy.from.arrays.size(); ++i) {
        EXPECT_TRUE(is_here(copy.to.arrays[i].data));
        std::memcpy(copy.to.arrays[i].data, copy.from.arrays[i].data, copy.from.arrays[i].bytes());
      }
      queue_.pop_front();
      places_[copy.number].arrived = true;
      changed_.notify_all();
    }
  }

  const size_t place_bytes_;
  std::vector<std::byte> memory_;  // of the model device
  std::vector<Place> places_;
  const std::chrono::milliseconds copy_time_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Copy> queue_;
  size_t carried_ = 0;
  bool ended_ = false;
  std::thread device_;
};

// Fails, or stalls, at the fourth batch.
class Troubled : public BatchSource {
 public:
  Troubled(std::unique_ptr<BatchSource> loader, bool stalls) : loader_(std::move(loader)), stalls_(stalls) {}
  BatchLease next(StreamHandle consumer) override {
    if (++batches_ < 4) return loader_->next(consumer);
    std::unique_lock lock(mutex_);
    if (stalls_) changed_.wait(lock, [&] { return stopped_; });
    fail("loader", "clip07 broke");
  }
  LoaderStats stats() const override { return loader_->stats(); }
  void stop() override {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

 private:
  std::unique_ptr<BatchSource> loader_;
  const bool stalls_;
  int batches_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
};

class CrossingTest : public TinyCorpus {
 protected:
  struct Parts {
    std::unique_ptr<Crossing> crossing;
    FakeLink* link;
  };
  static Parts cross(const Corpus& corpus, const BatchPlan& plan, std::unique_ptr<BatchSource> loader,
                     double delay_s = 0, size_t places = 3, int copy_ms = 1) {
    const CrossingOptions options{places, delay_s, -1};
    auto link = std::make_unique<FakeLink>(options, RowBuilder(corpus, plan, voice_arrays(), 1).max_bytes(),
                                           std::chrono::milliseconds(copy_ms));
    FakeLink* const seen = link.get();
    return {std::make_unique<Crossing>(std::move(loader), std::move(link), options), seen};
  }
};

TEST_F(CrossingTest, carries_every_batch_in_order_bit_for_bit_into_memory_of_the_model_device) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  for (const size_t places : {1U, 2U, 4U}) {
    within(60, [&] {
      const Parts parts = cross(corpus, plan, open_loader(corpus, plan, options(2)), 0, places);
      Loader single(corpus, plan, options(2));
      for (uint64_t i = 0; i < 3 * plan.batches_per_epoch(); ++i) {
        const BatchLease batch = parts.crossing->next(), want = single.next();
        for (const Array& array : batch->arrays) ASSERT_TRUE(parts.link->is_here(array.data));
        ASSERT_EQ(batch->epoch, want->epoch);
        ASSERT_EQ(batch->index, want->index);
        ASSERT_EQ(batch->clips, want->clips);
        ASSERT_EQ(copy_to_host(*batch)->hash(), copy_to_host(*want)->hash()) << places << " places, batch " << i;
      }
      EXPECT_EQ(parts.crossing->stats().batches, 3 * plan.batches_per_epoch());
      EXPECT_GT(parts.crossing->stats().bytes_read, 0U);
    });
  }
}

TEST_F(CrossingTest, the_model_starts_after_the_delay_and_with_every_place_filled) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  within(60, [&] {
    const Stopwatch watch;
    const Parts delayed = cross(corpus, plan, open_loader(corpus, plan, options(2)), 0.3);
    delayed.crossing->next();
    EXPECT_GE(watch.ms(), 300);
    EXPECT_GE(delayed.link->carried(), 3U);
    const Parts slow = cross(corpus, plan, open_loader(corpus, plan, options(2)), 0, 3, 40);
    const Stopwatch waiting;
    slow.crossing->next();
    EXPECT_LE(slow.crossing->stats().consumer_waits_s, waiting.seconds());
    EXPECT_GE(slow.link->carried(), 3U) << "no delay, but batches must be ready";
    EXPECT_GT(slow.crossing->stats().consumer_waits_s, 0);
  });
}

TEST_F(CrossingTest, a_consumer_may_wait_a_while_at_a_time_also_for_the_start) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  within(60, [&] {
    const Stopwatch watch;
    const Parts delayed = cross(corpus, plan, open_loader(corpus, plan, options(2)), 0.2);
    int waits = 0;
    while (!delayed.crossing->wait(std::chrono::milliseconds(10))) ++waits;
    EXPECT_GE(watch.ms(), 200);
    EXPECT_GE(waits, 1);
    std::vector<BatchLease> held;
    for (int i = 0; i < 3; ++i) {
      while (!delayed.crossing->wait(std::chrono::milliseconds(10))) {
      }
      held.push_back(delayed.crossing->next());
      EXPECT_EQ(held.back()->index, static_cast<uint64_t>(i));
    }
    EXPECT_NE(error_of([&] { delayed.crossing->wait(std::chrono::milliseconds(1)); }).find("are held"),
              std::string::npos);
  });
}

TEST_F(CrossingTest, a_stalled_consumer_stops_it_and_it_goes_on_correctly) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  within(60, [&] {
    const Parts parts = cross(corpus, plan, open_loader(corpus, plan, options(2)));
    Loader single(corpus, plan, options(2));
    for (int i = 0; i < 20; ++i) {
      if (i % 7 == 3) std::this_thread::sleep_for(std::chrono::milliseconds(150));
      EXPECT_LE(parts.link->carried(), static_cast<size_t>(i) + 3) << "no more than there are places";
      ASSERT_EQ(copy_to_host(*parts.crossing->next())->hash(), copy_to_host(*single.next())->hash());
    }
  });
}

TEST_F(CrossingTest, an_error_comes_after_the_batches_before_it_even_before_the_delay_is_over) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  within(60, [&] {
    const Parts parts =
        cross(corpus, plan, std::make_unique<Troubled>(open_loader(corpus, plan, options(2)), false), 3000, 8);
    for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(parts.crossing->next()->index, i);
    for (int i = 0; i < 2; ++i) {
      EXPECT_NE(error_of([&] { parts.crossing->next(); }).find("clip07 broke"), std::string::npos);
    }
  });
}

TEST_F(CrossingTest, it_ends_at_once_wherever_it_is) {
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  within(60, [&] {
    for (const int taken : {0, 1, 3}) {
      const Parts full = cross(corpus, plan, open_loader(corpus, plan, options(2)), 0, 2);
      for (int i = 0; i < taken; ++i) full.crossing->next();
      if (taken == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    // The loader has nothing to give and the crossing waits for it: without an end, unless it is stopped.
    {
      const Parts stalled =
          cross(corpus, plan, std::make_unique<Troubled>(open_loader(corpus, plan, options(2)), true), 0, 3);
      for (int i = 0; i < 3; ++i) stalled.crossing->next();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
}

// --- on a GPU ---

TEST_F(CrossingTest, on_one_gpu_both_ways_of_crossing_feed_what_the_single_mode_feeds) {
  if (device_count() == 0) GTEST_SKIP() << "no GPU here";
  const Corpus corpus = open();
  const BatchPlan plan = plan_of(corpus);
  LoaderOptions on_gpu = options(3);
  on_gpu.device = 0;
  const int model_device = device_count() > 1 ? 1 : 0;
  for (const bool staged : {false, true}) {
    for (const bool overlap : {true, false}) {
      const CrossingOptions wanted{3, 0.1, model_device};
      GpuLinkOptions link;
      link.model_device = model_device, link.staged = staged, link.overlap = overlap;
      link.place_bytes = RowBuilder(corpus, plan, voice_arrays(), 1).max_bytes();
      Crossing crossing(open_loader(corpus, plan, on_gpu), make_gpu_link(wanted, link), wanted);
      Loader single(corpus, plan, on_gpu);
      for (uint64_t i = 0; i < 5 * plan.batches_per_epoch(); ++i) {
        const uint64_t got = copy_to_host(*crossing.next())->hash();
        ASSERT_EQ(got, copy_to_host(*single.next())->hash()) << (staged ? "staged" : "peer") << ", batch " << i;
      }
    }
  }
}

}  // namespace
}  // namespace myxtts
