#include "python/without_gil.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <unistd.h>

namespace myxtts {
namespace {

// Of the process, as the interpreter is.
std::atomic<bool> exiting = false;
std::thread::id exiting_thread;  // set before
std::atomic<int> threads_without_gil = 0;

bool is_to_stop() { return exiting && std::this_thread::get_id() != exiting_thread; }

[[noreturn]] void stop_for_good() {
  for (;;) ::pause();
}

PyThreadState* release() {
  if (exiting && !is_to_stop()) return nullptr;
  ++threads_without_gil;
  return PyEval_SaveThread();
}

}  // namespace

WithoutGil::WithoutGil() : state_(release()) {
  if (!is_to_stop()) return;
  --threads_without_gil;
  stop_for_good();
}

WithoutGil::~WithoutGil() {
  if (state_ == nullptr) return;
  if (!is_to_stop()) PyEval_RestoreThread(state_);
  --threads_without_gil;
  if (!is_to_stop()) return;
  if (PyGILState_Check() == 1) PyEval_SaveThread();  // the exit began while it was waited for
  stop_for_good();
}

void begin_exit() {
  exiting_thread = std::this_thread::get_id();
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
