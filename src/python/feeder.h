// What myxtts.Loader drives: a corpus, its plan, and a loader that begins at any batch of it.
#pragma once

#include "python/held_batch.h"
#include "session/open.h"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

namespace myxtts {

struct FeederOptions {
  std::vector<std::string> arrays;
  bool validation = false;  // the clips held out, each once
  uint64_t rank = 0, world_size = 1;
  int processes = 1;  // of the run on this machine: they share its cores and memory
};

// Where the next batch is.
struct FeedPosition {
  uint64_t epoch = 0, index = 0;
  bool operator==(const FeedPosition&) const = default;
};

// Any thread; of several that ask for a batch each waits for its turn. Refuses to work in a process that was forked
// from the one that opened it. Waits are for callers without the GIL.
class Feeder {
 public:
  Feeder(const Config& config, const FeederOptions& options, const SessionListener& listener);
  ~Feeder();
  Feeder(const Feeder&) = delete;
  Feeder& operator=(const Feeder&) = delete;

  // Ctrl-C ends a wait, with nothing taken. Null if an epoch is given that is over.
  std::shared_ptr<HeldBatch> next(std::optional<uint64_t> epoch);
  // What is ready is thrown away, unless the loader is there already and has not failed. If the batches there cannot be
  // opened, the next call tries again.
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
  void check_open() const;  // with mutex_ held
  std::shared_ptr<BatchSource> open_source();

  const pid_t process_;
  const Config config_;
  Feed feed_;
  std::shared_ptr<const PlannedCorpus> planned_;
  std::recursive_timed_mutex taking_;  // one consumer at a time; a signal's handler may interrupt its own thread's
  bool failed_ = false;                // guarded by taking_
  mutable std::mutex mutex_;           // guards the next three
  bool closed_ = false;
  FeedPosition position_;
  std::shared_ptr<BatchSource> source_;  // null: to be opened at the position
};

void bind_feeder(nanobind::module_& module);

}  // namespace myxtts
