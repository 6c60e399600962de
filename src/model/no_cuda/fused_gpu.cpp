#include "base/error.h"
#include "model/fused.h"

namespace myxtts {
namespace {

[[noreturn]] void missing() { fail("device", "this build has no CUDA: fused kernels on a GPU are not there"); }

}  // namespace

int64_t add_norm_chunks(int64_t, int64_t) { missing(); }
int64_t flow_chunks(int64_t, int64_t) { missing(); }
void add_norm_on_gpu(const AddNorm<Brain>&, StreamHandle) { missing(); }
void add_norm_backward_on_gpu(const AddNormBackward<Brain>&, StreamHandle) { missing(); }
void sum_parts_on_gpu(const SumParts<Brain>&, StreamHandle) { missing(); }
void fill_rotary_on_gpu(int64_t, float*, StreamHandle) { missing(); }
void rotate_on_gpu(const Rotation<Brain>&, StreamHandle) { missing(); }
void rotate_back_on_gpu(const RotationBackward<Brain>&, StreamHandle) { missing(); }
void gelu_backward_on_gpu(const GeluBackward&, StreamHandle) { missing(); }
void flow_input_on_gpu(const FlowInput<Brain>&, StreamHandle) { missing(); }
void flow_input_backward_on_gpu(const FlowInputBackward<Brain>&, StreamHandle) { missing(); }
void flow_error_on_gpu(const FlowError<Brain>&, StreamHandle) { missing(); }
void flow_error_backward_on_gpu(const FlowError<Brain>&, StreamHandle) { missing(); }

}  // namespace myxtts
