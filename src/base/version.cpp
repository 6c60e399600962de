#include "base/version.h"

namespace myxtts {

const char* program_version() { return MYXTTS_VERSION; }

}  // namespace myxtts
