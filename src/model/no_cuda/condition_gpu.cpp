#include "base/error.h"
#include "model/condition_kernels.h"

namespace myxtts {
namespace {

[[noreturn]] void missing() {
  fail("device", "this build has no CUDA", way_out("the condition's GPU kernels are not available"));
}

}  // namespace

void condition_on_gpu(const ConditionProblem&, BFloat16*, BFloat16*, StreamHandle) { missing(); }
void condition_backward_on_gpu(const ConditionProblem&, const BFloat16*, const BFloat16*, const ConditionGradients&,
                               StreamHandle) {
  missing();
}

}  // namespace myxtts
