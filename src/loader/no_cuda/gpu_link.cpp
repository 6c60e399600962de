#include "base/error.h"
#include "loader/crossing.h"

namespace myxtts {

std::unique_ptr<CrossingLink> make_gpu_link(const CrossingOptions&, const GpuLinkOptions&) {
  reject_input("loader", "this program was built without CUDA", way_out("leave out --data-gpu and --model-gpu"));
}

}  // namespace myxtts
