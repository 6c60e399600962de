#include "settings/config.h"

namespace myxtts {

std::string Source::to_string() const {
  static const char* const names[] = {"default", "preset", "file", "flag", "auto-tuned"};
  const std::string name = names[static_cast<int>(kind)];
  return detail.empty() ? name : name + " " + detail;
}

}  // namespace myxtts
