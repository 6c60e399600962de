#include "base/error.h"
#include "device/cuda/check.h"
#include "model/attention.h"
#include "model/cuda/attention_kernels.h"
#include "model/size.h"

namespace myxtts {
namespace {

// TMA descriptor of a tensor [rows, positions, parts, head_width] in tiles of `attention_tile` positions.
CUtensorMap tensor_map(const BFloat16* data, int64_t rows, int64_t positions, int64_t parts) {
  static const auto encode = [] {
    void* found = nullptr;
#if CUDART_VERSION >= 12050
    CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault));
#else
    CUDA_CHECK(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault));
#endif
    if (found == nullptr) fail("device", "the driver is too old for tensor maps (TMA)", way_out("update it"));
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
  }();
  constexpr cuuint64_t width = head_width, bytes = sizeof(BFloat16);
  const auto n_parts = static_cast<cuuint64_t>(parts), n_positions = static_cast<cuuint64_t>(positions);
  const cuuint64_t sizes[] = {width, n_parts, n_positions, static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[] = {width * bytes, n_parts * width * bytes, n_positions * n_parts * width * bytes};
  const cuuint32_t box[] = {width, 1, attention_tile, 1};
  const cuuint32_t steps[] = {1, 1, 1, 1};
  CUtensorMap map;
  const CUresult result = encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, const_cast<BFloat16*>(data), sizes, strides,
                                 box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) fail("device", "cuTensorMapEncodeTiled failed with error {}", static_cast<int>(result));
  return map;
}

}  // namespace

bool gpu_has_fused_attention() {
  int device = 0, major = 0, minor = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return major == 9 && minor == 0;
}

void attention_on_gpu(const Attention& p, StreamHandle stream) {
  check_cuda(launch_attention(tensor_map(p.qkv, p.rows, p.positions, 3 * p.heads), p, stream), "attention");
}

void attention_backward_on_gpu(const AttentionBackward& b, StreamHandle stream) {
  const Attention& p = b.forward;
  check_cuda(launch_attention_backward(tensor_map(p.qkv, p.rows, p.positions, 3 * p.heads),
                                       tensor_map(b.d_output, p.rows, p.positions, p.heads), b, stream),
             "attention backward");
}

}  // namespace myxtts
