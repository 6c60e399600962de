#include "model/products.h"

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

// cuBLAS counts columns first: what is [n, m] here is m rows of n columns there.
Layout layout_of(const at::Tensor& matrix) {
  cublasLtMatrixLayout_t made = nullptr;
  const int64_t rows = matrix.size(1);
  check(cublasLtMatrixLayoutCreate(&made, CUDA_R_16BF, static_cast<uint64_t>(rows),
                                   static_cast<uint64_t>(matrix.size(0)), rows),
        "cublasLtMatrixLayoutCreate");
  return Layout(made);
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

// For a sum that is split. Other kernels would use four bytes of it as a counter of tiles, and cuBLASLt would clear
// them before every product: a recorded step would wait 4 microseconds for each of a hundred clearings. Offered
// nothing, it takes the same kernels without the counter, which are as fast.
constexpr int64_t workspace_of_sums = 32 << 20;

// Whether a kernel is one that we take before cuBLASLt's first proposal.
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
  const cudaDeviceProp& card = *at::cuda::getCurrentDeviceProperties();
  const auto number = config_of<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID);
  const auto* const tile = std::ranges::find(tiles, number, &Tile::number);
  constexpr double nearly = 0.9;
  return card.major == 9 && tile != std::end(tiles) &&
         static_cast<double>(elements) >= nearly * card.multiProcessorCount * static_cast<double>(tile->elements) &&
         config_of<int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM) == 1;
}

// A side of a product as cuBLAS sees it, and whether it is turned first.
struct Side {
  const at::Tensor& matrix;
  bool turned;
};

struct Product {
  Side first, second;
  const at::Tensor& result;
  bool adds = false;
  at::Tensor before_gelu = {};

  bool of_weight() const { return second.turned; }  // its gradient: a long sum, which may be worth splitting
  int64_t workspace_bytes() const { return of_weight() ? workspace_of_sums : 0; }
  bool run() const;
  std::optional<cublasLtMatmulAlgo_t> choose(const Description& description, const Layout& a, const Layout& b,
                                             const Layout& c) const;
};

// cuBLASLt orders its proposals by what it expects of them. On an H200 the first that does not split the sum and has
// one of some tiles takes 4 % less time than the first of all over the products of a block, and 1 % more than the best
// (bench/results/products.json). A rule, not a race: every run takes the same kernel and gives the same bits. It is for
// cards of that kind, and for results whose tiles nearly fill one.
std::optional<cublasLtMatmulAlgo_t> Product::choose(const Description& description, const Layout& a, const Layout& b,
                                                    const Layout& c) const {
  cublasLtMatmulPreference_t made = nullptr;
  check(cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
  const Preference preference(made);
  const auto bytes = static_cast<size_t>(workspace_bytes());
  check(cublasLtMatmulPreferenceSetAttribute(preference.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes,
                                             sizeof(bytes)),
        "cublasLtMatmulPreferenceSetAttribute");
  std::array<cublasLtMatmulHeuristicResult_t, 8> found = {};
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      at::cuda::getCurrentCUDABlasLtHandle(), description.get(), a.get(), b.get(), c.get(), c.get(), preference.get(),
      static_cast<int>(found.size()), found.data(), &count);
  if (status != CUBLAS_STATUS_SUCCESS || count == 0) return std::nullopt;
  for (int i = 0; i < count; ++i) {
    if (preferred(found[i].algo, result.numel())) return found[i].algo;
  }
  return found[0].algo;
}

bool Product::run() const {
  if (!result.is_cuda()) return false;
  const c10::cuda::CUDAGuard guard(result.device());
  cublasLtMatmulDesc_t made = nullptr;
  check(cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  const Description description(made);
  if (first.turned) set(description, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  if (second.turned) set(description, CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_T);
  if (before_gelu.defined()) {
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_GELU_AUX);
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, before_gelu.mutable_data_ptr());
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, before_gelu.size(1));
  }
  const Layout a = layout_of(first.matrix), b = layout_of(second.matrix), c = layout_of(result);

  // Chosen once a shape.
  static std::mutex mutex;
  static std::map<std::array<int64_t, 6>, std::optional<cublasLtMatmulAlgo_t>> known;
  const int64_t kind = first.turned + 2 * second.turned + 4 * adds + 8 * before_gelu.defined();
  std::optional<cublasLtMatmulAlgo_t> algorithm;
  {
    const std::lock_guard lock(mutex);
    const auto [place, is_new] = known.try_emplace({first.matrix.size(0), first.matrix.size(1), second.matrix.size(0),
                                                    second.matrix.size(1), result.get_device(), kind},
                                                   std::nullopt);
    if (is_new) place->second = choose(description, a, b, c);
    algorithm = place->second;
  }
  if (!algorithm) return false;

  const at::Tensor workspace = at::empty({workspace_bytes()}, result.options().dtype(at::kByte));
  const float one = 1, beta = adds ? 1 : 0;
  check(cublasLtMatmul(at::cuda::getCurrentCUDABlasLtHandle(), description.get(), &one, first.matrix.const_data_ptr(),
                       a.get(), second.matrix.const_data_ptr(), b.get(), &beta, result.mutable_data_ptr(), c.get(),
                       result.mutable_data_ptr(), c.get(), &*algorithm, workspace.mutable_data_ptr(),
                       static_cast<size_t>(workspace_bytes()), at::cuda::getCurrentCUDAStream(result.get_device())),
        "cublasLtMatmul");
  return true;
}

}  // namespace

bool chosen_product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& result) {
  return Product{{weight, true}, {x, false}, result}.run();
}

bool chosen_product_gelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& before,
                         const at::Tensor& after) {
  return Product{{weight, true}, {x, false}, after, false, before}.run();
}

bool chosen_product_backward(const at::Tensor& d_out, const at::Tensor& weight, const at::Tensor& d_x) {
  return Product{{weight, false}, {d_out, false}, d_x}.run();
}

bool chosen_weight_gradient(const at::Tensor& d_out, const at::Tensor& x, const at::Tensor& d_weight, bool adds) {
  return Product{{x, false}, {d_out, true}, d_weight, adds}.run();
}

}  // namespace myxtts
