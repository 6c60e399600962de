// Makes an observation of a loop that somebody else runs: it is told when a batch is asked for, taken and done with.
//
//   Observer observer(stats);                          // stats of the loader, if it has them
//   for (...) { observer.ask(); ...; observer.take(&batch); ...; observer.done(); }
//   const Observation seen = observer.finish();
//
// One thread.
#pragma once

#include "base/clock.h"
#include "diagnose/observation.h"

#include <functional>
#include <map>

namespace myxtts {

class Observer {
 public:
  // Without `stats` the loader is a foreign one: how long it is waited for is all that is known of it.
  explicit Observer(std::function<LoaderStats()> stats = {}) : stats_(std::move(stats)) {}

  // Forgets what was observed so far: that was the warm-up.
  void begin();

  void ask();
  void take(const Batch* batch = nullptr);  // null: a batch of a foreign loader
  void done();
  size_t batches() const { return seen_.batches.size(); }

  // Ends the time that is observed. What is replayed later is still counted.
  void end();
  // A batch that was kept has been consumed again, in so many ms: what it takes if data cost nothing.
  void replayed(size_t shape, double ms);

  Observation finish();

 private:
  LoaderStats stats() const { return stats_ ? stats_() : LoaderStats(); }

  struct Sum {
    double ms = 0;
    int count = 0;
  };
  std::function<LoaderStats()> stats_;
  Observation seen_;
  ObservedBatch now_;
  double waited_before_s_ = 0, cpu_before_s_ = 0;
  Stopwatch whole_;
  std::map<size_t, Sum> replayed_;  // by shape
};

}  // namespace myxtts
