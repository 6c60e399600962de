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
  check(cublasLtMatrixLayoutCreate(&made, CUDA_R_16BF, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), rows),
        "cublasLtMatrixLayoutCreate");
  return Layout(made);
}

template <typename T>
void set(const Description& description, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  check(cublasLtMatmulDescSetAttribute(description.get(), attribute, &value, sizeof(value)),
        "cublasLtMatmulDescSetAttribute");
}

constexpr int64_t workspace_bytes = 32 << 20;

// cuBLAS counts columns first: what is [n, out] here is `out` rows of n columns there.
struct Product {
  bool transposed = false;                // the first factor
  int64_t rows = 0, columns = 0, sum = 0;  // of the result, and what is summed over
  const at::Tensor *first = nullptr, *second = nullptr, *result = nullptr, *aside = nullptr;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
};

bool run(const Product& p) {
  const c10::cuda::CUDAGuard guard(p.result->device());
  cublasLtMatmulDesc_t made = nullptr;
  check(cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  const Description description(made);
  set(description, CUBLASLT_MATMUL_DESC_TRANSA, p.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, p.epilogue);
  set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p.aside->mutable_data_ptr());
  set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.rows);
  const Layout first = p.transposed ? layout(p.sum, p.rows) : layout(p.rows, p.sum), second = layout(p.sum, p.columns),
               result = layout(p.rows, p.columns);
  const cublasLtHandle_t handle = at::cuda::getCurrentCUDABlasLtHandle();

  // Which kernel is asked for once a shape.
  static std::mutex mutex;
  static std::map<std::array<int64_t, 5>, std::optional<cublasLtMatmulAlgo_t>> known;
  std::optional<cublasLtMatmulAlgo_t> algorithm;
  {
    const std::lock_guard lock(mutex);
    const auto [place, is_new] = known.try_emplace(
        {p.rows, p.columns, p.sum, static_cast<int64_t>(p.epilogue), p.result->get_device()}, std::nullopt);
    if (is_new) {
      cublasLtMatmulPreference_t preference_made = nullptr;
      check(cublasLtMatmulPreferenceCreate(&preference_made), "cublasLtMatmulPreferenceCreate");
      const Preference preference(preference_made);
      const size_t bytes = workspace_bytes;
      check(cublasLtMatmulPreferenceSetAttribute(preference.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes,
                                                 sizeof(bytes)),
            "cublasLtMatmulPreferenceSetAttribute");
      cublasLtMatmulHeuristicResult_t found = {};
      int count = 0;
      const cublasStatus_t status =
          cublasLtMatmulAlgoGetHeuristic(handle, description.get(), first.get(), second.get(), result.get(),
                                         result.get(), preference.get(), 1, &found, &count);
      if (status == CUBLAS_STATUS_SUCCESS && count > 0) place->second = found.algo;
    }
    algorithm = place->second;
  }
  if (!algorithm) return false;
  const at::Tensor workspace = at::empty({workspace_bytes}, p.result->options().dtype(at::kByte));
  const float one = 1, zero = 0;
  check(cublasLtMatmul(handle, description.get(), &one, p.first->const_data_ptr(), first.get(),
                       p.second->const_data_ptr(), second.get(), &zero, p.result->mutable_data_ptr(), result.get(),
                       p.result->mutable_data_ptr(), result.get(), &*algorithm, workspace.mutable_data_ptr(),
                       workspace_bytes, at::cuda::getCurrentCUDAStream(p.result->get_device())),
        "cublasLtMatmul");
  return true;
}

}  // namespace

bool product_gelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& before, const at::Tensor& after) {
  return run({true, weight.size(0), x.size(0), x.size(1), &weight, &x, &after, &before, CUBLASLT_EPILOGUE_GELU_AUX});
}

bool product_gelu_backward(const at::Tensor& d_out, const at::Tensor& weight, const at::Tensor& before,
                           const at::Tensor& d_before) {
  return run({false, weight.size(1), d_out.size(0), d_out.size(1), &weight, &d_out, &d_before, &before,
              CUBLASLT_EPILOGUE_DGELU});
}

}  // namespace myxtts
