#include "base/error.h"
#include "model/attention.h"

namespace myxtts {

bool gpu_has_fused_attention() { return false; }
void attention_on_gpu(const Attention&, StreamHandle) {
  fail("device", "this build has no CUDA", way_out("the fused attention kernel is not available"));
}
void attention_backward_on_gpu(const AttentionBackward&, StreamHandle) {
  fail("device", "this build has no CUDA", way_out("the fused attention kernel is not available"));
}

}  // namespace myxtts
