#include "model/matmul.h"

#include "base/error.h"

#include <algorithm>
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

// cuBLAS is column-major: a row-major [n, m] matrix is m rows by n columns there.
Layout layout_of(const at::Tensor& matrix) {
  cublasLtMatrixLayout_t handle = nullptr;
  const int64_t rows = matrix.size(1);
  check(cublasLtMatrixLayoutCreate(&handle, CUDA_R_16BF, static_cast<uint64_t>(rows),
                                   static_cast<uint64_t>(matrix.size(0)), rows),
        "cublasLtMatrixLayoutCreate");
  return Layout(handle);
}

template <typename T>
void set(const Description& description, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  check(cublasLtMatmulDescSetAttribute(description.get(), attribute, &value, sizeof(value)),
        "cublasLtMatmulDescSetAttribute");
}

template <typename T>
T config_of(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute) {
  T value = {};
  size_t written = 0;
  check(cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof(value), &written),
        "cublasLtMatmulAlgoConfigGetAttribute");
  return value;
}

// Workspace for split-K kernels only. Given a workspace, other kernels keep a tile counter in it, and cuBLASLt clears
// that before every call: 4 microseconds each, a hundred times in a captured step. Without one they run without the
// counter, equally fast.
constexpr int64_t split_k_workspace_bytes = 32 << 20;

// Whether to prefer a kernel over the first heuristic result.
bool preferred(const cublasLtMatmulAlgo_t& algorithm, int64_t elements) {
  struct Tile {
    uint32_t number;
    int64_t elements;
  };
  constexpr Tile tiles[] = {{CUBLASLT_MATMUL_TILE_128x80, 128 * 80},
                            {CUBLASLT_MATMUL_TILE_128x128, 128 * 128},
                            {CUBLASLT_MATMUL_TILE_128x160, 128 * 160},
                            {CUBLASLT_MATMUL_TILE_128x64, 128 * 64},
                            {CUBLASLT_MATMUL_TILE_64x128, 64 * 128}};
  const cudaDeviceProp& gpu = *at::cuda::getCurrentDeviceProperties();
  const auto number = config_of<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID);
  const auto* const tile = std::ranges::find(tiles, number, &Tile::number);
  constexpr double min_occupancy = 0.9;
  return gpu.major == 9 && tile != std::end(tiles) &&
         static_cast<double>(elements) >=
             min_occupancy * gpu.multiProcessorCount * static_cast<double>(tile->elements) &&
         config_of<int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM) == 1;
}

// An operand as cuBLAS sees it.
struct Operand {
  const at::Tensor& matrix;
  bool transposed;
};

struct Product {
  Operand first, second;
  const at::Tensor& result;
  bool accumulate = false;
  at::Tensor before_gelu = {};

  bool is_weight_gradient() const { return second.transposed; }  // a long reduction that may use split-K
  int64_t workspace_bytes() const { return is_weight_gradient() ? split_k_workspace_bytes : 0; }
  bool run() const;
  std::optional<cublasLtMatmulAlgo_t> choose(const Description& description, const Layout& a, const Layout& b,
                                             const Layout& c) const;
};

// cuBLASLt sorts its heuristic results by expected time. On one H200, the first without split-K and with a preferred
// tile takes 4 % less time over a block than the first result, and 1 % more than the best
// (bench/results/products.json). A fixed rule instead of autotuning keeps the kernel, and so the bits, the same in
// every run.
std::optional<cublasLtMatmulAlgo_t> Product::choose(const Description& description, const Layout& a, const Layout& b,
                                                    const Layout& c) const {
  cublasLtMatmulPreference_t handle = nullptr;
  check(cublasLtMatmulPreferenceCreate(&handle), "cublasLtMatmulPreferenceCreate");
  const Preference preference(handle);
  const auto bytes = static_cast<size_t>(workspace_bytes());
  check(cublasLtMatmulPreferenceSetAttribute(preference.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes,
                                             sizeof(bytes)),
        "cublasLtMatmulPreferenceSetAttribute");
  std::array<cublasLtMatmulHeuristicResult_t, 8> results = {};
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      at::cuda::getCurrentCUDABlasLtHandle(), description.get(), a.get(), b.get(), c.get(), c.get(), preference.get(),
      static_cast<int>(results.size()), results.data(), &count);
  if (status != CUBLAS_STATUS_SUCCESS || count == 0) return std::nullopt;
  for (int i = 0; i < count; ++i) {
    if (preferred(results[i].algo, result.numel())) return results[i].algo;
  }
  return results[0].algo;
}

bool Product::run() const {
  if (!result.is_cuda()) return false;
  const c10::cuda::CUDAGuard guard(result.device());
  cublasLtMatmulDesc_t handle = nullptr;
  check(cublasLtMatmulDescCreate(&handle, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  const Description description(handle);
  if (first.transposed) set(description, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  if (second.transposed) set(description, CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_T);
  if (before_gelu.defined()) {
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_GELU_AUX);
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, before_gelu.mutable_data_ptr());
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, before_gelu.size(1));
  }
  const Layout a = layout_of(first.matrix), b = layout_of(second.matrix), c = layout_of(result);

  // Select the kernel once per shape.
  static std::mutex mutex;
  static std::map<std::array<int64_t, 6>, std::optional<cublasLtMatmulAlgo_t>> cache;
  const int64_t kind = first.transposed + 2 * second.transposed + 4 * accumulate + 8 * before_gelu.defined();
  std::optional<cublasLtMatmulAlgo_t> algorithm;
  {
    const std::lock_guard lock(mutex);
    const auto [entry, is_new] = cache.try_emplace({first.matrix.size(0), first.matrix.size(1), second.matrix.size(0),
                                                    second.matrix.size(1), result.get_device(), kind},
                                                   std::nullopt);
    if (is_new) entry->second = choose(description, a, b, c);
    algorithm = entry->second;
  }
  if (!algorithm) return false;

  const at::Tensor workspace = at::empty({workspace_bytes()}, result.options().dtype(at::kByte));
  const float one = 1, beta = accumulate ? 1 : 0;
  check(cublasLtMatmul(at::cuda::getCurrentCUDABlasLtHandle(), description.get(), &one, first.matrix.const_data_ptr(),
                       a.get(), second.matrix.const_data_ptr(), b.get(), &beta, result.mutable_data_ptr(), c.get(),
                       result.mutable_data_ptr(), c.get(), &*algorithm, workspace.mutable_data_ptr(),
                       static_cast<size_t>(workspace_bytes()), at::cuda::getCurrentCUDAStream(result.get_device())),
        "cublasLtMatmul");
  return true;
}

}  // namespace

bool tuned_matmul(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& result) {
  return Product{{weight, true}, {x, false}, result}.run();
}

bool tuned_matmul_gelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& before,
                       const at::Tensor& after) {
  return Product{{weight, true}, {x, false}, after, false, before}.run();
}

bool tuned_matmul_backward(const at::Tensor& d_out, const at::Tensor& weight, const at::Tensor& d_x) {
  return Product{{weight, false}, {d_out, false}, d_x}.run();
}

bool tuned_weight_gradient(const at::Tensor& d_out, const at::Tensor& x, const at::Tensor& d_weight, bool accumulate) {
  return Product{{x, false}, {d_out, true}, d_weight, accumulate}.run();
}

}  // namespace myxtts
