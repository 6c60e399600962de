#include "base/error.h"
#include "model/window_kernels.h"

namespace myxtts {
namespace {

[[noreturn]] void missing() {
  fail("device", "this build has no CUDA", way_out("the windows' GPU kernels are not available"));
}

}  // namespace

void windows_on_gpu(const WindowShape&, const BFloat16*, BFloat16*, StreamHandle) { missing(); }
void windows_backward_on_gpu(const WindowShape&, const BFloat16*, BFloat16*, StreamHandle) { missing(); }

}  // namespace myxtts
