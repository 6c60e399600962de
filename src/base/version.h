// The program's version, "0.1.0".
#pragma once

namespace myxtts {

const char* program_version();

}  // namespace myxtts
