#include "python/without_gil.h"

#include <atomic>

namespace myxtts {
namespace {

// Of the process, as the interpreter is. The number changes with the GIL held.
std::atomic<bool> exiting = false;
int threads_without_gil = 0;

PyThreadState* release() {
  if (exiting) return nullptr;
  ++threads_without_gil;
  return PyEval_SaveThread();
}

}  // namespace

WithoutGil::WithoutGil() : state_(release()) {}

WithoutGil::~WithoutGil() {
  if (state_ == nullptr) return;
  PyEval_RestoreThread(state_);
  --threads_without_gil;
}

bool interpreter_exits() { return exiting; }

void bind_exit(nanobind::module_& module) {
  module.def(
      "begin_exit", [] { exiting = true; }, "From now on waits end, and no call releases the interpreter's lock.");
  module.def(
      "threads_without_gil", [] { return threads_without_gil; },
      "Calls that are to return before the interpreter ends.");
  module.def(
      "forget_other_threads", [] { threads_without_gil = 0; }, "They are not in a process that was forked.");
}

}  // namespace myxtts
