// Other programs, run to their end without a shell, and this one's own use of the processor. Any thread.
#pragma once

#include <string>
#include <vector>

namespace myxtts {

// The full path of a program on PATH, or empty.
std::string find_program(const std::string& name);

// Runs it with its output discarded; returns the exit status, or throws Error when it cannot be started.
int run_program(const std::vector<std::string>& arguments);

// Of all threads of this process together, since it started.
double cpu_seconds();

}  // namespace myxtts
