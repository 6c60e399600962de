#include "base/error.h"
#include "model/alignment.h"

namespace myxtts {

size_t alignment_scratch_bytes(const AlignmentProblem&) { return 0; }

void align_on_gpu(const AlignmentProblem&, void*, StreamHandle) {
  fail("device", "this build has no CUDA", way_out("alignment on a GPU is not available"));
}

}  // namespace myxtts
