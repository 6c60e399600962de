// A device number of this program as libtorch's: -1 is the CPU.
#pragma once

#include <c10/core/Device.h>

namespace myxtts {

inline at::Device torch_device(int number) {
  return number < 0 ? at::Device(at::kCPU) : at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(number));
}

}  // namespace myxtts
