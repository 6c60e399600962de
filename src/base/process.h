// Another program, run to its end without a shell. Any thread.
#pragma once

#include <string>
#include <vector>

namespace myxtts {

// The full path of a program on PATH, or empty.
std::string find_program(const std::string& name);

// Runs it with its output discarded; returns the exit status, or throws Error when it cannot be started.
int run_program(const std::vector<std::string>& arguments);

}  // namespace myxtts
