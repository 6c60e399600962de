#include "model/gelu_products.h"

#include "base/error.h"

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <cublasLt.h>

namespace myxtts {
namespace {

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) fail("cublas", "{}: {}", call, cublasLtGetStatusString(status));
}

template <auto destroy>
struct Destroyer {
  template <typename T>
  void operator()(T* object) const {
    destroy(object);
  }
};
using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Destroyer<cublasLtMatrixLayoutDestroy>>;
using Description = std::unique_ptr<cublasLtMatmulDescOpaque_t, Destroyer<cublasLtMatmulDescDestroy>>;
using Preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, Destroyer<cublasLtMatmulPreferenceDestroy>>;

Layout layout(int64_t rows, int64_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  check(
      cublasLtMatrixLayoutCreate(&made, CUDA_R_16BF, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), rows),
      "cublasLtMatrixLayoutCreate");
  return Layout(made);
}

template <typename T>
void set(const Description& description, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  check(cublasLtMatmulDescSetAttribute(description.get(), attribute, &value, sizeof(value)),
        "cublasLtMatmulDescSetAttribute");
}

constexpr int64_t workspace_bytes = 32 << 20;

}  // namespace

// cuBLAS counts columns first: what is [n, out] here is `out` rows of n columns there.
bool product_gelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& before, const at::Tensor& after) {
  const int64_t out = weight.size(0), in = weight.size(1), count = x.size(0);
  const c10::cuda::CUDAGuard guard(x.device());
  cublasLtMatmulDesc_t made = nullptr;
  check(cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  const Description description(made);
  set(description, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_GELU_AUX);
  set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, before.mutable_data_ptr());
  set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, out);
  const Layout weights = layout(in, out), inputs = layout(in, count), results = layout(out, count);
  const cublasLtHandle_t handle = at::cuda::getCurrentCUDABlasLtHandle();

  // Which kernel is asked for once a shape.
  static std::mutex mutex;
  static std::map<std::array<int64_t, 4>, std::optional<cublasLtMatmulAlgo_t>> known;
  std::optional<cublasLtMatmulAlgo_t> algorithm;
  {
    const std::lock_guard lock(mutex);
    const auto [place, is_new] = known.try_emplace({out, in, count, x.get_device()}, std::nullopt);
    if (is_new) {
      cublasLtMatmulPreference_t preference_made = nullptr;
      check(cublasLtMatmulPreferenceCreate(&preference_made), "cublasLtMatmulPreferenceCreate");
      const Preference preference(preference_made);
      const size_t bytes = workspace_bytes;
      check(cublasLtMatmulPreferenceSetAttribute(preference.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes,
                                                 sizeof(bytes)),
            "cublasLtMatmulPreferenceSetAttribute");
      cublasLtMatmulHeuristicResult_t found = {};
      int results_found = 0;
      const cublasStatus_t status =
          cublasLtMatmulAlgoGetHeuristic(handle, description.get(), weights.get(), inputs.get(), results.get(),
                                         results.get(), preference.get(), 1, &found, &results_found);
      if (status == CUBLAS_STATUS_SUCCESS && results_found > 0) place->second = found.algo;
    }
    algorithm = place->second;
  }
  if (!algorithm) return false;
  const at::Tensor workspace = at::empty({workspace_bytes}, x.options().dtype(at::kByte));
  const float one = 1, zero = 0;
  check(cublasLtMatmul(handle, description.get(), &one, weight.const_data_ptr(), weights.get(), x.const_data_ptr(),
                       inputs.get(), &zero, after.mutable_data_ptr(), results.get(), after.mutable_data_ptr(),
                       results.get(), &*algorithm, workspace.mutable_data_ptr(), workspace_bytes,
                       at::cuda::getCurrentCUDAStream(x.get_device())),
        "cublasLtMatmul");
  return true;
}

}  // namespace myxtts
