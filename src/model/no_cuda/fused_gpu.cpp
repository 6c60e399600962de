#include "base/error.h"
#include "model/fused.h"

namespace myxtts {
namespace {

[[noreturn]] void missing() {
  fail("device", "this build has no CUDA", way_out("the fused GPU kernels are not available"));
}

}  // namespace

int64_t add_norm_chunks(int64_t, int64_t) { missing(); }
int64_t flow_chunks(int64_t, int64_t) { missing(); }
void dropout_mask_on_gpu(const DropoutMask&, StreamHandle) { missing(); }
void add_norm_on_gpu(const AddNorm<BFloat16>&, StreamHandle) { missing(); }
void add_norm_backward_on_gpu(const AddNormBackward<BFloat16>&, StreamHandle) { missing(); }
void sum_parts_on_gpu(const SumParts<BFloat16>&, StreamHandle) { missing(); }
void fill_rotary_table_on_gpu(int64_t, float*, StreamHandle) { missing(); }
void rotary_on_gpu(const Rotary<BFloat16>&, StreamHandle) { missing(); }
void rotary_backward_on_gpu(const RotaryBackward<BFloat16>&, StreamHandle) { missing(); }
void gelu_backward_on_gpu(const GeluBackward&, StreamHandle) { missing(); }
void flow_input_on_gpu(const FlowInput<BFloat16>&, StreamHandle) { missing(); }
void flow_input_backward_on_gpu(const FlowInputBackward<BFloat16>&, StreamHandle) { missing(); }
void flow_error_on_gpu(const FlowError<BFloat16>&, StreamHandle) { missing(); }
void flow_error_backward_on_gpu(const FlowError<BFloat16>&, StreamHandle) { missing(); }

}  // namespace myxtts
