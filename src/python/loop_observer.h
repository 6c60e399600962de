// myxtts.diagnose: the times of a loop in Python, and the verdict on them.
#pragma once

#include <nanobind/nanobind.h>

namespace myxtts {

void bind_loop_observer(nanobind::module_& module);

}  // namespace myxtts
