// Durations and the end of a task, in words. Any thread.
#pragma once

#include <ctime>
#include <string>

namespace myxtts {

// "42 s", "3 min 05 s", "2 h 07 min".
std::string duration_text(double seconds);

// "ends about 17:42, 3 min left", in local time; with its date if that is not the date of `now`.
std::string time_left_text(double seconds, std::time_t now = std::time(nullptr));

}  // namespace myxtts
