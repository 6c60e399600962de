// Settings of training that are `auto`: from the hours of speech and the size of the model.
#pragma once

#include "settings/config.h"

namespace myxtts {

// The configuration with numbers for `auto` in dropout, learning_rate and the length of the run. What is set stays.
Config fit_settings(Config config, double hours);

}  // namespace myxtts
