#include "cli/torch/patience.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <unistd.h>

namespace myxtts {

void wait_without_spinning() {
  constexpr const char* setting = "OMP_WAIT_POLICY";
  if (std::getenv(setting) || std::getenv("GOMP_SPINCOUNT")) return;
  if (setenv(setting, "passive", 1) != 0) return;
  std::ifstream file("/proc/self/cmdline");
  std::string line(std::istreambuf_iterator<char>(file), {});  // each argument ends with a zero
  std::vector<char*> arguments;
  for (size_t at = 0; at < line.size(); at = line.find('\0', at) + 1) arguments.push_back(line.data() + at);
  arguments.push_back(nullptr);
  execv("/proc/self/exe", arguments.data());  // if it fails, the program continues as it is
}

}  // namespace myxtts
