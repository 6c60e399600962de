// The same diagnosis from what a run has left behind: its metrics, and its settings where they are there.
#pragma once

#include "artifacts/run_report.h"
#include "diagnose/diagnosis.h"
#include "settings/config.h"

#include <optional>

namespace myxtts {

// Throws Error when the run has no step times.
Diagnosis diagnose_run(const RunRecord& run, const std::optional<Config>& config);

}  // namespace myxtts
