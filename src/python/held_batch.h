// A batch as Python holds it: a lease, the streams that read it, and the corpus that its clips are named by.
#pragma once

#include "loader/batch.h"
#include "python/shared_array.h"
#include "session/open.h"

#include <memory>
#include <mutex>
#include <vector>

#include <sys/types.h>

namespace myxtts {

// Any thread. The loader waits for the default stream, so work on other streams is put in order with it: what they get
// from make_ready_on() on sees the batch as it is to be, and its memory is used again after what they have by then.
class HeldBatch {
 public:
  HeldBatch(BatchLease lease, std::shared_ptr<const PlannedCorpus> planned);
  // In a process forked from the loader's nothing is given back: its threads are not there.
  ~HeldBatch();
  HeldBatch(const HeldBatch&) = delete;
  HeldBatch& operator=(const HeldBatch&) = delete;

  const Batch& batch() const { return *lease_; }
  const Corpus& corpus() const { return planned_->corpus; }
  void make_ready_on(StreamHandle stream) const;

  // In host memory of its own: it holds no place of the ring.
  std::shared_ptr<HeldBatch> on_host() const;

 private:
  void give_back();

  const std::shared_ptr<const PlannedCorpus> planned_;
  BatchLease lease_;
  const pid_t process_;
  const int device_;
  mutable std::mutex mutex_;
  struct User {
    StreamHandle stream;
    std::unique_ptr<DeviceEvent> event;
  };
  mutable std::vector<User> users_;
};

// Of one of its arrays; throws Python's KeyError or AttributeError in the class.
SharedArray share(const std::shared_ptr<HeldBatch>& held, const Array& array);

void bind_batch(nanobind::module_& module);

}  // namespace myxtts
