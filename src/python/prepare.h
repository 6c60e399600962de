// myxtts.prepare.
#pragma once

#include <nanobind/nanobind.h>

namespace myxtts {

void bind_prepare(nanobind::module_& module);

}  // namespace myxtts
