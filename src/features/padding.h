// Reflect padding, shared by both backends.
#pragma once

#include "base/host_device.h"

#include <cstdint>

namespace myxtts {

// Reflects an index about the first and last sample, repeatedly if needed; `length` > 0.
MYXTTS_HOST_DEVICE inline int64_t reflected_index(int64_t i, int64_t length) {
  if (length == 1) return 0;
  const int64_t period = 2 * (length - 1);
  i %= period;
  if (i < 0) i += period;
  return i < length ? i : period - i;
}

}  // namespace myxtts
