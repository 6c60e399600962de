#include "model/capture.h"

#include "base/error.h"

namespace myxtts {

std::unique_ptr<OwnStream> use_own_stream(int /*device*/) {
  reject_input("device", "this build's libtorch has no CUDA",
               way_out("give --device cpu, or build with a libtorch that has it"));
}
std::unique_ptr<GraphCapturer> make_graph_capturer(int /*device*/) {
  fail("device", "this build's libtorch has no CUDA");
}

}  // namespace myxtts
