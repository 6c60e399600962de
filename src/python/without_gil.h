// The interpreter's lock, released for a scope. A thread that wants it back while the interpreter ends would be unwound
// through C++, which ends the process. So at the interpreter's exit begin_exit() makes waits end and later scopes keep
// the lock, and Python waits until nobody is in an earlier one.
#pragma once

#include <nanobind/nanobind.h>

namespace myxtts {

// The caller holds the GIL.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* const state_;  // null: it is kept
};

bool interpreter_exits();

// begin_exit(), threads_without_gil() and forget_other_threads() for the package's handlers.
void bind_exit(nanobind::module_& module);

}  // namespace myxtts
