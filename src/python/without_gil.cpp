#include "python/without_gil.h"

#include <atomic>
#include <chrono>
#include <thread>

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

void begin_exit() {
  exiting = true;
  while (threads_without_gil > 0) {
    PyThreadState* const state = PyEval_SaveThread();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    PyEval_RestoreThread(state);
  }
}

bool interpreter_exits() { return exiting; }

void forget_other_threads() { threads_without_gil = 0; }

}  // namespace myxtts
