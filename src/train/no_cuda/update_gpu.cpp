#include "base/error.h"
#include "train/update.h"

namespace myxtts {

size_t update_scratch_bytes() { return 0; }

void update_on_gpu(const UpdateProblem&, void*, StreamHandle) {
  fail("device", "this build has no CUDA: an update on a GPU is not there");
}

}  // namespace myxtts
