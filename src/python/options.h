// Keywords of the Python functions as settings.
#pragma once

#include "settings/config.h"
#include "settings/settings.h"

#include <map>
#include <string>

namespace myxtts {

using Keywords = std::map<std::string, std::string>;  // key of a setting -> value, as a flag would have it

// The settings of `file`, which may be empty, with the keywords over them. Throws Error that names a keyword which
// `command` does not take, with the nearest that it does.
Config config_of(const std::string& file, const Keywords& keywords, Command command);

}  // namespace myxtts
