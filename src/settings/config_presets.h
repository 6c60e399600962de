// The files of `configs/`, compiled in (see src/CMakeLists.txt), so that the program needs no files of its own.
#pragma once

#include <vector>

namespace myxtts {

struct ConfigPreset {
  const char* name;  // the file's name without .yaml
  const char* yaml;
};

const std::vector<ConfigPreset>& config_presets();

}  // namespace myxtts
