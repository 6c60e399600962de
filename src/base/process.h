// Runs programs without a shell, and reports the CPU time of this process. Any thread.
#pragma once

#include <string>
#include <vector>

namespace myxtts {

// The full path of a program on PATH, or empty.
std::string find_program(const std::string& name);

// Runs a program with its output discarded; returns the exit status. Blocks. Throws Error if it cannot be started.
int run_program(const std::vector<std::string>& arguments);

// CPU time of all threads of this process since its start.
double cpu_seconds();

}  // namespace myxtts
