// An array that Python, or a library that took it over, reads without a copy. Whoever holds one keeps its memory: a
// place of a loader's ring, or memory of its own. The last holder may let go on any thread, with or without the GIL.
#pragma once

#include "device/device.h"
#include "loader/array.h"

#include <functional>
#include <memory>

#include <nanobind/nanobind.h>

namespace myxtts {

struct SharedArray {
  Array array;
  std::shared_ptr<const void> owner;
  std::function<void(StreamHandle)> make_ready_on = {};  // before work on that stream; empty: it is ready everywhere
};

// In host memory of its own, whatever the device.
SharedArray copy_to_host(const SharedArray& from);

// "cpu" or "cuda:N".
std::string device_text(const Array& array);

void bind_array(nanobind::module_& module);

}  // namespace myxtts
