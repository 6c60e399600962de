// `diagnose retracing`: checks the settings, then takes real steps and counts captures.
#pragma once

#include "diagnose/retracing.h"
#include "session/listener.h"
#include "settings/config.h"

#include <cstdint>

namespace myxtts {

// Adds what `steps` steps show to the report. Without data.train_data on a small corpus made for it.
void observe_retracing(RetracingReport& report, Config config, int64_t steps, const SessionListener& listener);

}  // namespace myxtts
