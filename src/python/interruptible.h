// Waits and work that Ctrl-C ends: the interpreter's lock is released meanwhile, and taken for a moment every 50 ms to
// ask whether a signal has come.
#pragma once

#include "session/listener.h"

#include <chrono>
#include <functional>

namespace myxtts {

constexpr std::chrono::milliseconds between_signal_checks(50);

// Calls `wait_a_while`, which returns within that time, until it is true. The caller does not hold the GIL. Throws
// nanobind::python_error if a signal's handler has raised, Error when the interpreter exits.
void wait_for(const std::function<bool()>& wait_a_while);

// Runs `work` on a thread of its own. After a signal its listener ends it at the next report of progress. The caller
// holds the GIL. What is said and warned of is logged when it is done.
void run_interruptibly(const std::function<void(const SessionListener&)>& work);

}  // namespace myxtts
