// Runs programs without a shell, within limits, and reports the CPU time of this process. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace myxtts {

// The full path of a program on PATH, or empty.
std::string find_program(const std::string& name);

struct ProgramResult {
  int status = 0;
  std::string output;
};

struct ProgramLimits {
  double seconds;
  size_t output_bytes;
};

// Runs a program that reads `input`; blocks. Throws Error if it cannot be started; also, and then it is killed, if it
// takes longer or prints more.
ProgramResult run_program(const std::vector<std::string>& arguments, const ProgramLimits& limits,
                          std::string_view input = {});

// CPU time of all threads of this process since its start.
double cpu_seconds();

}  // namespace myxtts
