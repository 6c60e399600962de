// Access to libtorch's current CUDA stream. `torch_cuda/` implements it if libtorch was built with CUDA.
#pragma once

#include "device/device.h"

namespace myxtts {

StreamHandle current_stream(int device);

}  // namespace myxtts
