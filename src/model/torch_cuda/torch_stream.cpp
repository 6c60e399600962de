#include "model/torch_stream.h"

#include <c10/cuda/CUDAStream.h>

namespace myxtts {

StreamHandle current_stream(int device) {
  return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device)).stream();
}

}  // namespace myxtts
