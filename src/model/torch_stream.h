// The stream that libtorch gives its work to. Its headers for CUDA are there only in a build of libtorch with CUDA, so
// what needs them lies in `torch_cuda/`.
#pragma once

#include "device/device.h"

namespace myxtts {

StreamHandle current_stream(int device);

}  // namespace myxtts
