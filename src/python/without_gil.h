// The interpreter's lock, released for a scope. A thread that wants it back while the interpreter ends would be unwound
// through C++, which ends the process. So at the interpreter's exit waits end, and threads other than the exiting one
// stop for good where they would take the lock again or release it. begin_exit() waits until nobody is in a scope.
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
  PyThreadState* const state_;  // null: the exiting thread keeps it
};

// For the interpreter's exit; the caller holds the GIL.
void begin_exit();
bool interpreter_exits();

// After a fork in the child: the other threads are not there.
void forget_other_threads();

}  // namespace myxtts
