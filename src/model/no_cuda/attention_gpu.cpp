#include "base/error.h"
#include "model/attention.h"

namespace myxtts {

bool gpu_attends() { return false; }
void attend_on_gpu(const Attention&, StreamHandle) { fail("device", "this build has no CUDA: attention is not there"); }
void attend_backward_on_gpu(const AttentionBackward&, StreamHandle) {
  fail("device", "this build has no CUDA: attention is not there");
}

}  // namespace myxtts
