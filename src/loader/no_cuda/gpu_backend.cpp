#include "base/error.h"
#include "loader/backend.h"

namespace myxtts {

std::unique_ptr<LoaderBackend> make_gpu_backend(const Corpus&, const BatchPlan&, const LoaderOptions&) {
  reject_input("loader", "this program was built without CUDA", way_out("use --device cpu"));
}

}  // namespace myxtts
