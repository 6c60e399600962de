// What myxtts.Loader drives: a corpus, its plan, and a loader that begins at any batch of it.
#pragma once

#include "python/held_batch.h"
#include "session/open.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

namespace myxtts {

struct FeederOptions {
  std::vector<std::string> arrays;
  bool validation = false;  // the clips held out, each once
  uint64_t rank = 0, world_size = 1;
};

// Where the next batch is.
struct FeedPosition {
  uint64_t epoch = 0, index = 0;
  bool operator==(const FeedPosition&) const = default;
};

// Any thread; of several that ask for a batch each waits for its turn. Refuses to work in a process that was forked
// from the one that opened it. No method but the constructor is to be called with the GIL held unless noted.
class Feeder {
 public:
  Feeder(const Config& config, const FeederOptions& options, const SessionListener& listener);
  ~Feeder();
  Feeder(const Feeder&) = delete;
  Feeder& operator=(const Feeder&) = delete;

  // Ctrl-C ends a wait, with nothing taken.
  std::shared_ptr<HeldBatch> next();
  // What is ready is thrown away, unless the loader is there already.
  void seek(FeedPosition position);
  // Ends all threads. Batches that are held stay as they are.
  void close();

  FeedPosition position() const;
  LoaderStats stats() const;
  const PlannedCorpus& planned() const { return *planned_; }
  const Feed& feed() const { return feed_; }
  const Config& config() const { return config_; }
  uint64_t plan_hash() const;

 private:
  void check_process() const;
  std::shared_ptr<BatchSource> open_at(FeedPosition position) const;
  std::shared_ptr<BatchSource> source() const;
  std::shared_ptr<BatchSource> take_source();

  const pid_t process_;
  const Config config_;
  Feed feed_;
  std::shared_ptr<const PlannedCorpus> planned_;
  std::timed_mutex taking_;   // one consumer at a time
  mutable std::mutex mutex_;  // guards the next two
  FeedPosition position_;
  std::shared_ptr<BatchSource> source_;  // null: closed
};

void bind_feeder(nanobind::module_& module);

}  // namespace myxtts
