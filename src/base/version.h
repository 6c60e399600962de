// The program's version, "0.2.0".
#pragma once

namespace myxtts {

const char* program_version();

}  // namespace myxtts
