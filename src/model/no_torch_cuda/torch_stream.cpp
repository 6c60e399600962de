#include "model/torch_stream.h"

#include "base/error.h"

namespace myxtts {

StreamHandle current_stream(int /*device*/) {
  fail("device", "libtorch was built without CUDA", way_out("the model runs on the CPU only"));
}

}  // namespace myxtts
