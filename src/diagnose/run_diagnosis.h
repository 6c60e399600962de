// Diagnosis of a finished run from its metrics and, if present, its settings.
#pragma once

#include "artifacts/run_report.h"
#include "diagnose/diagnosis.h"
#include "settings/config.h"

#include <optional>

namespace myxtts {

// Throws Error if the run has no step times.
Diagnosis diagnose_run(const RunRecord& run, const std::optional<Config>& config);

}  // namespace myxtts
