#include "base/error.h"
#include "model/conv.h"

namespace myxtts {
namespace {

[[noreturn]] void missing() {
  fail("device", "this build has no CUDA", way_out("the convolutions' GPU kernels are not available"));
}

}  // namespace

int64_t depthwise_chunks(int64_t, int64_t) { missing(); }
void unfold_on_gpu(const Unfold<BFloat16>&, StreamHandle) { missing(); }
void unfold_backward_on_gpu(const UnfoldBackward<BFloat16>&, StreamHandle) { missing(); }
void depthwise_on_gpu(const Depthwise<BFloat16>&, StreamHandle) { missing(); }
void depthwise_backward_on_gpu(const DepthwiseBackward<BFloat16>&, StreamHandle) { missing(); }

}  // namespace myxtts
