#include "model/torch_stream.h"

#include "base/error.h"

namespace myxtts {

StreamHandle current_stream(int /*device*/) {
  fail("device", "this build's libtorch has no CUDA: the model runs on the CPU only");
}

}  // namespace myxtts
