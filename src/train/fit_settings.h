// Settings of training that are `auto`: from the hours of speech and the size of the model.
#pragma once

#include "settings/config.h"

namespace myxtts {

// The configuration with numbers for `auto` in dropout, learning_rate and the length of the run. What is set stays.
// A voice that begins with another's weights needs fewer and smaller steps, and stops early: how early follows from the
// run's plan, so early_stopping stays `auto` for it and is `none` for others.
Config fit_settings(Config config, double hours, bool fine_tuned = false);

}  // namespace myxtts
