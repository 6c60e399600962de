// The slow path: one clip at a time, read, decoded and transformed in the consumer's own thread, nothing ahead of time.
// It is what the loader is compared with, and what is left when threads are the trouble. On the CPU alone.
#pragma once

#include "loader/loader.h"

namespace myxtts {

class SlowLoader : public BatchSource {
 public:
  SlowLoader(const Corpus& corpus, const BatchPlan& plan, const LoaderOptions& options);

  BatchLease next(StreamHandle consumer = nullptr) override;
  LoaderStats stats() const override { return stats_; }

 private:
  const BatchPlan& plan_;
  const LoaderOptions options_;
  const RowBuilder builder_;
  uint64_t epoch_, index_;
  LoaderStats stats_;
};

}  // namespace myxtts
