// Runs programs without a shell, within limits, and reports the CPU time of this process. Any thread.
#pragma once

#include <cstddef>
#include <memory>
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

// A program that is started ahead, because that takes longer than its work, and waits for its input. One thread.
class WaitingProgram {
 public:
  explicit WaitingProgram(const std::vector<std::string>& arguments);  // throws Error if it cannot be started
  ~WaitingProgram();                                                   // ends it
  WaitingProgram(const WaitingProgram&) = delete;
  WaitingProgram& operator=(const WaitingProgram&) = delete;

  static constexpr size_t most_input = size_t{1} << 15;  // bytes that it is given without waiting for it

  // Gives it all of its input and reads its output, as run_program() does. Once.
  ProgramResult finish(std::string_view input, const ProgramLimits& limits);

 private:
  struct Running;
  std::unique_ptr<Running> running_;
};

// CPU time of all threads of this process since its start.
double cpu_seconds();

}  // namespace myxtts
